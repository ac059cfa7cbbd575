"""Runs from Python: simulate, run, resume and open them; one Result for all; sweeps, theory and comparisons."""
