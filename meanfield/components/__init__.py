"""User-defined components by name: kernels, layer norms, reactions, fields, initial densities and diagnostics."""
