"""Catalogue of cases: the shipped ones by topic, and templates of new ones by domain and phenomenon."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from meanfield.case.errors import refusal
from meanfield.case.load import read_text, shipped
from meanfield.case.overrides import inline
from meanfield.case.schema import entries
from meanfield.domains.domain import Domain
from meanfield.domains.table import DOMAINS
from meanfield.shipped import shipped_folder

Tables = dict[str, dict[str, Any]]


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
    "Fields along a sequence": ("representation_field", "representation_rate", "representation_window"),
}  # fmt: skip


class ShippedCase(NamedTuple):
    """Shipped case; ``seconds`` is the wall time of a run on the machine of benchmarks/cases.py."""

    name: str
    title: str
    seconds: float


def by_topic(search: str = "") -> dict[str, list[ShippedCase]]:
    """Return the shipped cases by topic, restricted to those with ``search`` in topic, name or text.

    Upper and lower case letters count as equal.
    """
    titles, seconds = shipped(), json.loads((shipped_folder("cases") / "seconds.json").read_text("ascii"))
    groups = {
        topic: [
            ShippedCase(name, titles[name], seconds[name])
            for name in names
            if search.lower() in f"{topic} {name} {read_text(name)}".lower()
        ]
        for topic, names in TOPICS.items()
    }
    return {topic: group for topic, group in groups.items() if group}


class Phenomenon(NamedTuple):
    """Phenomenon of a new case: a sentence, tables of the case file, and keys of [domain] that the phenomenon sets.

    Each domain lists its phenomena.
    """

    about: str
    tables: Tables
    domain: Mapping[str, Any] = {}


PHENOMENA: dict[str, Phenomenon] = {
    "clusters": Phenomenon(
        "a nearly uniform density condenses into clusters, which merge one by one in exponentially long times",
        {"attention": {"beta": 9.0}, "time": {"end": 50.0}},
    ),
    "merging": Phenomenon(
        "two clusters attract each other by e^{-beta (1 - cos angle)} and merge, late and all at once",
        {"attention": {"beta": 4.0}, "initial": {"kind": "points"}, "time": {"end": 50.0}},
    ),
    "noise": Phenomenon(
        "noise against attention: below the critical noise (`meanfield stability CASE`) order grows and saturates",
        {"attention": {"beta": 2.0}, "stabilizers": {"noise": 0.1}, "time": {"end": 40.0}},
    ),
    "drift": Phenomenon(
        "without the residual a layer replaces each token, and the initial positions are forgotten",
        {"attention": {"beta": 2.0}, "stabilizers": {"residual": False}, "time": {"method": "layers", "layers": 12}},
    ),
    "blow_up": Phenomenon(
        "without layer norm nothing bounds a token: a Gaussian of variance s explodes at t = 1/(2 beta s)",
        {
            "attention": {"beta": 1.0},
            "initial": {"kind": "gaussian", "variance": 0.2},
            "stabilizers": {"layer_norm": "none"},
            "time": {"end": 2.4},
        },
    ),
    "collapse": Phenomenon(
        "in high dimensions all pairs of tokens have the same cosine g, with dg/dt = 2 g (1 - g)",
        {"attention": {"beta": 1.0}, "time": {"end": 8.0}},
        {"dimension": 64},
    ),
}


def new_case(manifold: str, phenomenon: str) -> str:
    """Return the text of a new case file for a phenomenon on a domain, with a description of each key.

    Raises CaseError.
    """
    if phenomenon not in PHENOMENA:
        raise refusal("--phenomenon", phenomenon, f"one of {', '.join(PHENOMENA)}")
    about, tables, needed = PHENOMENA[phenomenon]
    domains = [name for name, kind in DOMAINS.items() if phenomenon in kind.phenomena]
    if manifold not in domains:
        raise refusal("manifold", manifold, f"one of {', '.join(domains)} for {phenomenon}")
    kind = DOMAINS[manifold]
    domain = {"manifold": manifold} | dict(kind.typical) | {k: v for k, v in needed.items() if k in kind.typical}
    initial = tables.get("initial") or _initial(kind)
    if initial["kind"] == "points":  # two points 2 rad apart
        zeros = [0.0] * (kind.ambient - 2)
        initial = initial | {"points": [[math.cos(angle), math.sin(angle), *zeros] for angle in (1, -1)]}
    whole = {"domain": domain, "attention": tables["attention"]} | tables | {"initial": initial}
    lines = [f"# {about[0].upper()}{about[1:]}.", f'title = "{phenomenon.capitalize().replace("_", "-")}: {manifold}"']
    for section, keys in whole.items():
        lines += ["", f"[{section}]", *(_line(section, keys, name) for name in keys)]
    return "\n".join(lines) + "\n"


def _initial(kind: type[Domain]) -> dict[str, Any]:
    """Return the table [initial] of a case file for a nearly uniform initial state on a domain."""
    if kind.has_tokens:
        return {"kind": "uniform"}
    return {"kind": "perturbed", "amplitude": 1e-2, "degrees": 8, "seed": 0}


def _line(section: str, keys: Mapping[str, Any], name: str) -> str:
    """Return the line ``key = value  # description`` of one key of a new case file.

    A key that chooses the kind of a section, such as ``manifold``, has no description.
    """
    word = keys.get("manifold", keys.get("kind", ""))
    found = [entry for entry in entries(f"{section}.{name}") if entry.name == f"{section}.{name}"]
    entry = next((entry for entry in found if word in entry.variant), found[0])
    return f"{name} = {inline(keys[name])}" + ("" if keys[name] == word else f"  # {entry.description}")
