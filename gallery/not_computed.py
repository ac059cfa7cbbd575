"""Statements of the field that no entry computes, and why."""

NOT_COMPUTED = {
    "Figures 4 and 5 of 2312.10794v4, and figure 3 at its own sample count": "the figures could not be seen; "
    "`merging/phase_curve` has the curve of figure 3, at full size up to d = 1024",
    "One cluster on the circle for β ≥ Cn² (2312.10794v4, section 5)": "the last mergers take e^{2β} with β ≥ n²: the "
    "bound is about times that no ensemble reaches; `merging/pair_in_a_long_time` has one merger at β = 40",
    "√(β log β) modes of Gaussian samples on the line": "a count of samples, not of an equation; "
    "`growth/modes_of_random_tokens` has the √β modes of uniform tokens on the circle",
    "Critical coupling K_c < K# of the global minimizer (2606.05140v1)": "proven by a comparison of free energies "
    "without a number; `noise/unnormalized_fold` has the fold that bounds it",
    "Wasserstein distance √(log(β+1)/β) e^{Ct} + e^{−ct} to the projected measure (2605.10931v1)": "a bound whose "
    "constants the abstract does not give; `phases/top_eigenspace` has the rate c",
    "Distribution of overlaps on the simplex at finite d (2604.01978v1)": "only the abstract could be read; "
    "`values/random_overlap` has the mean for large d",
    "Atoms on arcs of width 1/(2√β) with a perceptron (2601.21366v1)": "about critical points of an energy, of which "
    "only the abstract could be read",
    "U-shaped retrieval profile in closed form (2605.09213v1)": "only the abstract could be read; "
    "`causal/influence_profile` has the profile at β = 0, derived anew",
    "Period of flips of regular polygons (2609.28448)": "the paper was not found; `repulsion/flip` has the threshold "
    "of a layer's step, derived anew",
    "Experiments of 2408.09523v2 on trained networks": "they need PyTorch: see the page of experiments",
}
