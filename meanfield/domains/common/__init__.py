"""Parts shared by the set-ups of several domains: the Problem of a run, the model of a case, the snapshot of
another run.
"""
