"""Panels of a figure by their names, and the options of a figure."""
