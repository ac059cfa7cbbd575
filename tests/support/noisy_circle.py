"""Sections of a small case, clusters with a little noise on a circle of 64 cells, shared by tests of runs."""

SECTIONS = """
[domain]
manifold = "circle"
resolution = 64
[attention]
beta = 6.0
[stabilizers]
noise = 0.001
[initial]
kind = "perturbed"
amplitude = 0.1
seed = 7
"""
