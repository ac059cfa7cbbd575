"""Statements of the field that no entry computes, and why."""

NOT_COMPUTED = {
    "Other ensembles of figure 5 of 2312.10794v4 (V random, or ± QᵀK)": "a picture without a number, which was not "
    "seen; `merging/random_matrices` has the row with V = I, `values/spectral_selection` V = QᵀK",
    "Wasserstein distance √(log(β+1)/β) e^{Ct} + e^{−ct} to the projected measure (2605.10931v1), small at times of "
    "order log β": "a bound whose constants the abstract does not give; `phases/top_eigenspace` has c, and with it the "
    "time log β/2c until e^{−ct} is 1/√β",
    "Logistic equation of the overlap for large β in the time td (2604.01978v1)": "a limit with d → ∞ and β ≫ d², of "
    "tokens that fill the sphere: more than any ensemble holds; `values/random_overlap` has β = 0 for large d, "
    "`values/random_antipodal` two tokens for d = 2",
    "Retrieval profile of tokens themselves, not of the linearized equations (2605.09213v1)": "of order 1/N in each "
    "prompt, whose average takes N³ prompts, and with a bias of distant tokens that no key of a case has; "
    "`causal/lost_in_the_middle` has the closed form beside the linearized equations",
    "Number of Rényi centers Θ(β^{(d−1)/2}) (2411.04990v2, conjecture)": "without constants; `causal/parking_circle` "
    "has that of the circle",
    "Attention condenses at β ~ N² in layers with V = −I (2609.28448v1)": "found by its authors in long chaotic runs, "
    "without a number in the abstract; `repulsion/period_two` has the threshold before them",
    "Experiments of 2408.09523v2 on trained networks": "they need PyTorch: see the page of experiments, where each has "
    "its command and numbers",
}
