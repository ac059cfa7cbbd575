"""Analysis of run files: comparison, Wasserstein distances, cluster tracks, mergers, linear stability, status."""
