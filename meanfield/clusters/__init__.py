"""Clusters by persistence, on cells and among tokens, and the distribution of ⟨x, y⟩ over pairs of tokens."""
