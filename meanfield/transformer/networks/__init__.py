"""Standard Transformer and PDE network in PyTorch, made of the same parts; their data and training."""
