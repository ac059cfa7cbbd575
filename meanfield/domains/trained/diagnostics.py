"""Diagnostics of hidden states, one small function each, in the table at the foot; none depends on a velocity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.diagnostics.table import LENGTHS, Diagnostic, Diagnostics, Table
from meanfield.domains.particles.diagnostics import DIAGNOSTICS as OF_PARTICLES
from meanfield.domains.particles.diagnostics import ParticleSample, cluster_scale
from meanfield.domains.particles.velocity import ParticleVelocity
from solvers.mesh.mesh import Floats

_SHARED = ("mass", "centroid", "clusters", "cluster_mass", "cluster_center", "pairs", "pairs_close")


@dataclass(frozen=True)
class LayerStates(ParticleSample):
    """Hidden states (n, d) of tokens after some layers, and their lengths (n,) where only directions are stored."""

    lengths: Floats | None = None

    @cached_property
    def state_lengths(self) -> Floats:
        """Return the lengths (n,) of the hidden states."""
        return self.radii if self.lengths is None else self.lengths


def cosine(sample: ParticleSample) -> float:
    """Return the mean of the cosines ⟨x_i, x_j⟩ of the directions x of different tokens, i ≠ j."""
    return mean_cosine(sample.directions)


def mean_cosine(directions: Floats) -> float:
    """Return the mean of ⟨x_i, x_j⟩ over i ≠ j for unit vectors x (n, d), by the length of their sum."""
    n = len(directions)
    return float((n * (directions.mean(axis=0) ** 2).sum() - 1) / (n - 1))


def effective_rank(vectors: Floats) -> float:
    """Return the effective rank e^H of vectors (n, d) (Roy and Vetterli 2007); 0 where all are zero.

    H is the entropy of the shares σ_i/Σσ of the singular values σ.
    """
    values = np.linalg.svd(vectors, compute_uv=False)
    total = values.sum()
    if not total > 0:
        return 0.0
    shares = values[values > 0] / total
    return float(np.exp(-(shares * np.log(shares)).sum()))


def diagnostics_of_states(
    names: Sequence[str], masses: Floats, dimension: int, lengths: Callable[[float], Floats | None] = lambda time: None
) -> Diagnostics:
    """Return the diagnostics of hidden states (n, d) of a trained Transformer.

    names     from the table DIAGNOSTICS
    masses    (n,) of the tokens, of sum 1
    lengths   time → lengths (n,) of the states where only directions are stored
    """
    velocity = ParticleVelocity(1.0, masses=masses)  # sets the scale of clusters
    counts = DIAGNOSTICS["clusters"]._replace(attributes=(("scale", cluster_scale(velocity)),))

    def sample_of(time: float, points: Floats) -> LayerStates:
        return LayerStates(velocity, time, points, masses, lengths=lengths(time))

    return Diagnostics(names, DIAGNOSTICS | {"clusters": counts}, {"d": dimension, **LENGTHS}, sample_of)


DIAGNOSTICS: Table = {
    **{name: OF_PARTICLES[name] for name in _SHARED},
    "cosine": Diagnostic(cosine, "", "mean inner product of two different tokens"),
    "length": Diagnostic(
        lambda sample: float(np.sqrt((sample.state_lengths**2).mean())), "", "root mean square length of the states"
    ),
    "effective_rank": Diagnostic(
        lambda sample: effective_rank(sample.directions), "", "effective rank of the tokens' directions"
    ),
}
