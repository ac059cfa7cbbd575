"""Sweeps: a case over a grid of values, solved by local or Dask workers into one index."""
