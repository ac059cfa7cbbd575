"""The shipped cases, one TOML file each, by topic; `seconds.json` has how long each runs (benchmarks/cases.py)."""

TOPICS: dict[str, tuple[str, ...]] = {
    "Growth, clusters and their mergers": (
        "uniform", "growth_circle", "growth_sphere", "metastable_circle", "metastable_sphere", "merging_pair_circle",
        "merging_pair_sphere", "three_clusters_sphere", "merging_far_circle", "ladder_circle", "tokens_pair",
        "tokens_ladder",
    ),
    "Exact flows and high dimensions": (
        "flow_beta0_circle", "flow_beta0_sphere", "tokens_drift", "collapse_high_dimension", "tokens_equiangular",
        "tokens_high_dimension",
    ),
    "Drift without the residual": ("drift_circle", "drift_line", "representation_drift"),
    "Blow-up without layer norm": (
        "blow_up_line", "blow_up_plane", "representation_blow_up", "gate_line", "contraction_line",
        "contraction_plane",
    ),
    "Layer norms": (
        "layer_norm_post", "layer_norm_pre", "layer_norm_peri", "layer_norm_ngpt", "layer_norm_mix",
        "layer_norm_cod",
    ),
    "Noise": ("noise_above", "noise_below"),
    "Attention of other kinds": (
        "causal", "tokens_causal", "window", "sinkhorn", "heads", "random_qkv", "repulsion",
    ),
    "Feed-forward networks and reactions": ("feed_forward", "reaction"),
    "Fields along a sequence": ("representation_field", "representation_rate"),
}  # fmt: skip
