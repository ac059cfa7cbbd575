"""Questions to run files: comparison, Wasserstein distances, cluster tracks, mergers, linear stability, info."""
