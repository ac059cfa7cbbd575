"""What set-ups of several domains share: the Problem of a run, the model of a case, another run's snapshot."""
