"""Sections of a small case shared by tests of runs: clusters with a little noise on a circle of 64 cells."""

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
