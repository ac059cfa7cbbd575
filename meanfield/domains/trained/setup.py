"""Problem of a trained Transformer: the states before the first layer, transformed by one layer after another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import refusal
from meanfield.diagnostics.table import Diagnostics
from meanfield.domains.common.problem import Problem
from meanfield.domains.sphere.embeddings import embeddings_of
from meanfield.domains.trained.diagnostics import diagnostics_of_states
from meanfield.domains.trained.section import Trained
from meanfield.domains.trained.weights import TrainedLayers
from meanfield.model.discrete_layers import LayerIntegrator
from meanfield.sections.initial import Tokens
from solvers.backends import Backend
from solvers.io.layout import Points
from solvers.timestepping.integrate import fixed


def set_up_trained(case: Case, backend: Backend | None = None) -> Problem:
    """Return the problem of a case with a trained Transformer: states before the first layer, layers, diagnostics.

    The layers run on the host. Raises ValueError or OSError for a file that cannot be used.
    """
    domain, time = case.domain, case.time
    assert isinstance(domain, Trained)
    assert isinstance(case.initial, Tokens)
    if domain.logits != "softmax":
        raise refusal("domain.logits", domain.logits, '"softmax": other attention can be read, not run')
    layers = TrainedLayers(
        domain.file, case.attention.beta, case.attention.mask == "causal", domain.without, time.layers
    )
    if layers.dimension != domain.d:
        raise refusal("domain.dimension", domain.d, f"{layers.dimension}, the width of {domain.file}")
    start = embeddings_of(case.initial, domain.d)
    masses = np.full(len(start), 1 / len(start))

    def diagnostics(names: Sequence[str], degrees: int | None) -> Diagnostics:
        """Return the named diagnostics; ``degrees`` is not used."""
        return diagnostics_of_states(names, masses, domain.d)

    return Problem(
        space=Points(masses, domain.d, time_name="layers passed", name="token"),
        initial=lambda: start.copy(),
        dynamics=fixed(LayerIntegrator(layers)),
        prepare=lambda state: None,
        diagnostics=diagnostics,
    )
