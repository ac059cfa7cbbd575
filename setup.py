"""Packages: every folder of both, and in a wheel the shipped cases and sweeps, which lie at the top level.

An editable installation finds these beside the package. It is one folder on the path of imports then, where a folder
``solvers`` without a module, which an uninstallation has left behind, is no hindrance.
"""

import sys

from setuptools import find_packages, setup

packages = find_packages(include=["meanfield*", "solvers*"])
if "editable_wheel" in sys.argv:
    setup(packages=packages, package_dir={"": "."})
else:
    shipped = {"meanfield.cases": "cases", "meanfield.sweeps": "sweeps"}
    setup(packages=[*packages, *shipped], package_dir=shipped)
