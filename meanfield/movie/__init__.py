"""Movies: one frame for each snapshot of a run."""
