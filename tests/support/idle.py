"""Kernels of the simulated device that do nothing: launches, memory and traffic do not depend on values."""

import sys

import numpy as np
from support.stand_in import StandIn


def replace_kernels(monkeypatch, run=lambda *arguments: None):
    """Replace each launch of a kernel by run(kernel, shape, *arguments); arrays that kernels would fill hold ones."""
    instead = {"run": run, "empty": lambda shape, dtype=float: StandIn(np.ones(shape, dtype))}
    for name, module in list(sys.modules.items()):
        for what, other in instead.items():
            if name.startswith("solvers.backends.gpu") and hasattr(module, what):
                monkeypatch.setattr(module, what, other)
