"""Components of a user's own: kernels, layer norms, reactions, fields, initial densities and diagnostics, by name."""
