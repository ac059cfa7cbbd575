"""Analysis of solutions: errors and orders of convergence over resolutions."""
