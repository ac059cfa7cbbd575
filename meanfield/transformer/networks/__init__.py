"""Two networks of the same parts in PyTorch, the standard Transformer and the PDE network, their data and training."""
