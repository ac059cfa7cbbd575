"""Environment of a run: recorder, restart, segments, signals, progress, provenance, paths, cost estimate."""
