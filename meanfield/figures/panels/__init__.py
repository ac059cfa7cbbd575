"""Panels of a figure by name, and the options of a figure."""
