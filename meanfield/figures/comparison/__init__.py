"""Figures of `meanfield compare`: distances over time, states side by side."""
