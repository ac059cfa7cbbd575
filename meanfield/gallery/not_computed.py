"""Statements of the field that no entry computes, with reasons."""

NOT_COMPUTED = {
    "Other ensembles of figure 5 of 2312.10794v4 (V random, or ± QᵀK)": "a figure without a printed number; the "
    "figure was not available; `merging/random_matrices` has the row with V = I, `values/spectral_selection` V = QᵀK",
    "Wasserstein distance √(log(β+1)/β) e^{Ct} + e^{−ct} to the projected measure (2605.10931v1), small at times of "
    "order log β": "a bound whose constants are not in the abstract; `phases/top_eigenspace` measures c, which "
    "determines the time log β/2c until e^{−ct} is 1/√β",
    "Logistic equation of the overlap for large β in the time td (2604.01978v1)": "the limit d → ∞ and β ≫ d² of "
    "tokens that fill the sphere, which needs more tokens than any ensemble has; `values/random_overlap` has β = 0 for "
    "large d, `values/random_antipodal` two tokens for d = 2",
    "Retrieval profile of tokens themselves, not of the linearized equations (2605.09213v1)": "the profile is of order "
    "1/N in each prompt, so that its average takes N³ prompts; cases have no key for a bias against distant tokens; "
    "`causal/lost_in_the_middle` compares the closed form with the linearized equations",
    "Number of Rényi centers Θ(β^{(d−1)/2}) (2411.04990v2, conjecture)": "no constants are given; "
    "`causal/parking_circle` has the number on the circle",
    "Attention condenses at β ~ N² in layers with V = −I (2609.28448v1)": "found by the authors in long chaotic runs, "
    "without a number in the abstract; `repulsion/period_two` has the preceding threshold, that of period two",
    "Experiments of 2408.09523v2 on trained networks": "they need PyTorch; the page of experiments has "
    "the command and the numbers of each",
}
