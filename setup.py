"""Packages: every folder of both, and shipped cases and sweeps, which lie at the top level."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["meanfield*", "solvers*"]), "meanfield.cases", "meanfield.sweeps"])
