"""Problems of tokens as particles: the velocity of a case for n tokens in any dimension."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import refusal
from meanfield.diagnostics.table import Diagnostics
from meanfield.domains.common.from_run import snapshot_of_run
from meanfield.domains.common.model_of_case import feed_forward_of, heads_by_interval
from meanfield.domains.common.problem import Problem, no_check
from meanfield.domains.particles.diagnostics import diagnostics_particles
from meanfield.domains.particles.initial_tokens import draw_tokens
from meanfield.domains.particles.motion import to_unit_length
from meanfield.domains.particles.section import Particles as ParticlesDomain
from meanfield.domains.particles.sequence import SequenceDiffusion
from meanfield.domains.particles.steps import (
    ToDevice,
    VelocityOfInterval,
    dynamics_adaptive,
    dynamics_explicit,
    dynamics_layers,
    origin_check,
)
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.domains.table import DOMAINS
from meanfield.model.heads import Head, merge_heads
from meanfield.model.layer_norm import LayerNorm
from meanfield.model.pattern import TokenPattern
from meanfield.sections.initial import Snapshot, Waves
from solvers.backends import Backend, backend_for
from solvers.io.layout import Points
from solvers.mesh.mesh import Floats
from solvers.timestepping.integrate import Dynamics
from solvers.timestepping.schedules import Schedule


def set_up_particles(case: Case, backend: Backend | None = None) -> Problem:
    """Return the problem of a case with particles: initial tokens, dynamics, diagnostics.

    The tokens move on the device of ``backend``, by default the host. Raises ValueError or OSError for a file that
    cannot be used.
    """
    heads, domain = heads_by_interval(case), case.domain
    assert isinstance(domain, ParticlesDomain)
    if isinstance(case.initial, Snapshot):
        positions, masses = tokens_of_run(case)
    else:
        positions, masses = draw_tokens(
            case.initial, domain.count or 1, domain.d, domain.seed, normalized=not case.tokens_have_radius
        )
    if isinstance(case.initial, Waves | Snapshot) and not case.tokens_have_radius:
        to_unit_length(positions)
    to_device = (backend or backend_for(positions)).to_device
    device_masses = to_device(masses)  # of the velocity; diagnostics are computed on the host

    @lru_cache(maxsize=2)
    def velocity(interval: int, on_host: bool = False) -> ParticleVelocity:
        merged = merge_heads(heads.of_interval(interval), domain.d)
        return particle_velocity(case, merged, masses if on_host else device_masses)

    for interval in range(len(heads.sets)):
        velocity(interval)  # raises for invalid matrices now, not during the run

    def velocity_at(time: float) -> ParticleVelocity:
        return velocity(heads.interval_at(time), on_host=True)

    def diagnostics(names: Sequence[str], degrees: int | None) -> Diagnostics:
        return diagnostics_particles(names, velocity_at, masses, domain.d, positions, _sequence_diffusion(case))

    return Problem(
        space=Points(masses, domain.d, name="token", position=_position(case)),
        initial=lambda: positions.copy(),
        dynamics=_dynamics(case, velocity, heads.intervals, domain.seed, to_device),
        check=origin_check(velocity, heads.intervals) if case.time.method == "adaptive" else no_check,
        prepare=lambda state: velocity(0).output_at(to_device(state.values)),
        diagnostics=diagnostics,
        snapshot_is_exact=False,  # a step depends on the previous step size, noise on the number of the step
    )


def _position(case: Case) -> str:
    """Return the description of the positions of tokens, as metadata of the run file."""
    return "radius times direction" if case.tokens_have_radius else "its direction: x over stabilizers.scale"


def tokens_of_run(case: Case) -> tuple[Floats, Floats]:
    """Return positions (n, d) and masses (n,) of the tokens in the snapshot of another run with which a case begins.

    Raises CaseError for a run that does not fit.
    """
    run, k = snapshot_of_run(case)
    if not DOMAINS[run.manifold].has_tokens or run.positions(k).shape[1] != case.domain.d:
        raise refusal("initial.file", str(run.path), f"a run of particles with domain.dimension = {case.domain.d}")
    if case.sequence is not None and np.ptp(run.weights) > 0:
        raise refusal("initial.file", str(run.path), "tokens of equal masses with a section [sequence]")
    return run.positions(k), run.weights


def _dynamics(
    case: Case, velocity: VelocityOfInterval, intervals: Schedule, seed: int, to_device: ToDevice
) -> Dynamics:
    """Return the dynamics of the tokens of a case: discrete layers, adaptive steps, or an explicit method."""
    time, stabilizers, along = case.time, case.stabilizers, _sequence_diffusion(case)
    if time.method == "layers":
        return dynamics_layers(velocity, time.step or 1.0, stabilizers.residual, along, to_device)
    if time.method == "adaptive":
        assert time.tolerance is not None  # set in a parsed case
        return dynamics_adaptive(velocity, intervals, time.tolerance, along, to_device)
    return dynamics_explicit(
        velocity, time.method, intervals, case.noise_on_unit_sphere, seed, along, time.cfl, to_device
    )


def _sequence_diffusion(case: Case) -> SequenceDiffusion | None:
    """Return the diffusion between neighboring tokens of a sequence; None for a case whose tokens have no order."""
    sequence = case.sequence
    if sequence is None:
        return None
    return SequenceDiffusion(sequence.diffusion, sequence.length, periodic=sequence.ends == "periodic")


def particle_velocity(case: Case, heads: Sequence[Head], masses: Floats | None = None) -> ParticleVelocity:
    """Return the velocity of the tokens of a case with the given heads and masses.

    A sphere of radius g counts as the unit sphere with β g² instead of β.
    """
    attention, stabilizers = case.attention, case.stabilizers
    return ParticleVelocity(
        case.beta_of_heads,
        attention.normalization,
        tuple(heads),
        masses,
        LayerNorm(stabilizers.layer_norm, stabilizers.alpha, stabilizers.switch_time),
        feed_forward_of(case),
        stabilizers.gate,
        attention.mask == "causal",
        kernel=attention.kernel,
        window=attention.window,
        rescaled=attention.rescaled,
        pattern=pattern_of(case),
    )


def pattern_of(case: Case) -> TokenPattern | None:
    """Return the sparse pattern of pairs of tokens that attend in a case; None where all pairs attend.

    In a periodic sequence the window of neighbors continues past the ends.
    """
    section, sequence = case.attention.pattern, case.sequence
    if section is None:
        return None
    periodic, causal = sequence is not None and sequence.ends == "periodic", case.attention.mask == "causal"
    return TokenPattern(section.local, section.global_tokens, section.random_tokens, section.seed, periodic, causal)
