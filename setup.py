"""Packages: every folder of both, and in a wheel what is shipped: cases, sweeps and entries of the gallery.

The shipped folders lie at the top level, where an editable installation finds them. That installation is one folder on
the path of imports, where a folder ``solvers`` without a module, which an uninstallation has left behind, does no harm.
"""

import sys
from pathlib import Path

from setuptools import find_packages, setup

packages = find_packages(include=["meanfield*", "solvers*"])
if "editable_wheel" in sys.argv:
    setup(packages=packages, package_dir={"": "."})
else:
    shipped = {"meanfield.cases": "cases", "meanfield.sweeps": "sweeps"}
    for topic in sorted(Path("gallery/entries").glob("*/")):
        shipped[f"meanfield.gallery.entries.{topic.name}"] = str(topic)
    setup(packages=[*packages, *shipped], package_dir=shipped)
