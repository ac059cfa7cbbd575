"""Panels of a figure by their names."""
