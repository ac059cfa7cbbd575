"""Runs of tokens at several numbers n beside the density: distances, fluctuations, and the theory for large n."""
