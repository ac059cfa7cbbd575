"""Escape of n tokens with noise from a metastable density: free-energy barriers, mean times, simulations of tokens."""
