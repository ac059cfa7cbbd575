"""What is measured of tokens in a sequence beside what is measured of all particles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.diagnostics.table import Table

if TYPE_CHECKING:
    from meanfield.domains.particles.diagnostics import Particles


def drift(sample: Particles) -> float:
    """1 − Σ m_i ⟨θ_i(t), θ_i(0)⟩: 0 where tokens are what they were, 1 where that is forgotten."""
    assert sample.start is not None
    start = sample.start / np.linalg.norm(sample.start, axis=1)[:, None]
    return float(sample.masses @ (1.0 - np.einsum("nd,nd->n", sample.directions, start)))


def roughness(sample: Particles) -> float:
    """∫|∂ₓu|² dx of the field u(x) over a sequence, by differences of neighbours."""
    assert sample.along is not None
    steps = np.diff(sample.points, axis=0)
    return float((steps**2).sum()) * len(sample.points) / sample.along.length


SEQUENCE: Table = {
    "drift": (drift, "", "1 - mean cosine of a token with its start"),
    "roughness": (roughness, "", "integral of |du/dx|^2 over the sequence"),
}
