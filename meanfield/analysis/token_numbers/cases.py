"""Cases of the density and of n tokens with the same physics and the same initial density."""

from __future__ import annotations

from typing import Any

import msgspec

from meanfield.case.case import Case
from meanfield.case.errors import CaseError, refusal
from meanfield.domains.axisymmetric.section import Axisymmetric
from meanfield.domains.domain import Domain
from meanfield.domains.particles.section import Particles
from meanfield.domains.table import DOMAINS
from meanfield.sections import initial as sections
from meanfield.sections.evolution import Output
from meanfield.sections.section import tag_of

TOLERANCE = 1e-6  # of a step of the tokens, far below their fluctuations of order n^{−1/2}

_replace = msgspec.structs.replace


def density_case(case: Case, intervals: int) -> Case:
    """Return the case of the density, with snapshots at the ends of so many equal ``intervals`` of time.

    A case of particles becomes that of their density on the circle or the sphere. Raises CaseError for a case without
    such a density, and for an initial density from which no tokens are drawn.
    """
    domain = _round_domain(case) if case.domain.has_tokens else case.domain
    if not (domain.is_closed or isinstance(domain, Axisymmetric)):
        raise refusal("domain.manifold", domain.manifold, "circle, sphere, axisymmetric or particles, for limit")
    initial = case.initial
    if not isinstance(initial, sections.SampledDensity):
        kinds = [tag_of(kind) for kind in domain.initial if issubclass(kind, sections.SampledDensity)]
        raise refusal("initial.kind", tag_of(type(initial)), f"one of {', '.join(kinds)}, from which tokens are drawn")
    output = Output(snapshots=intervals, samples=1, spacing="linear", diagnostics=("mass",))
    return _checked(case, domain=domain, initial=_replace(initial, sampling="random"), output=output)


def _round_domain(case: Case) -> Domain:
    """Return the circle or the sphere on which particles of a case move, with a typical resolution."""
    d = case.domain.d
    kind = next((kind for kind in DOMAINS.values() if kind.is_closed and kind.ambient == d), None)
    if kind is None:
        raise refusal("domain.dimension", d, "2 or 3 for particles, whose density is on the circle or the sphere")
    return kind(**kind.typical)


def token_case(case: Case, count: int, intervals: int) -> Case:
    """Return a case of ``count`` particles with the physics and the initial density of a case of a density.

    ``case`` is a result of :func:`density_case`. The positions of the tokens are recorded at the ends of the
    ``intervals`` equal intervals of time. Raises CaseError for physics that particles do not have.
    """
    initial, d = case.initial, case.domain.d
    domain = Particles(dimension=d, count=count)
    if isinstance(case.domain, Axisymmetric):
        assert isinstance(initial, sections.SampledDensity)
        initial = _about_last_axis(initial, d)
    tolerance = None if case.stabilizers.noise or case.time.method == "layers" else TOLERANCE
    output = Output(snapshots=1, samples=intervals, spacing="linear", diagnostics=("position",))
    return _checked(case, domain=domain, initial=initial, tolerance=tolerance, output=output)


def of_seed(case: Case, seed: int) -> Case:
    """Return a case of particles with another seed of the initial tokens and of the noise."""
    return _replace(case, domain=_replace(case.domain, seed=seed))


def _checked(case: Case, *, tolerance: float | None = None, **changes: Any) -> Case:
    """Return a case with changes of its sections, validated, without a handover or a condition to stop.

    In continuous time the method is the default one for the domain, with the ``tolerance`` if one is given.
    """
    method = case.time.method if case.time.method == "layers" else "auto"
    time = _replace(case.time, method=method, tolerance=tolerance, stop=None, stop_at=None)
    return _replace(case, time=time, handover=None, **changes).replace({})


def _about_last_axis(initial: sections.SampledDensity, d: int) -> sections.SampledDensity:
    """Return an axisymmetric initial density with its axis e_d as the density of tokens in R^d.

    Raises CaseError for a density that tokens in R^d have no section [initial] for.
    """

    def vector(component: float) -> tuple[float, ...]:
        return (*(0.0,) * (d - 1), component)

    if isinstance(initial, sections.Uniform):
        return initial
    if isinstance(initial, sections.Moebius):
        return _replace(initial, axis=vector(initial.axis[0]))
    if isinstance(initial, sections.VonMisesFisher) and all(abs(one.center[0]) == 1 for one in initial.components):
        parts = tuple(_replace(one, center=vector(one.center[0])) for one in initial.components)
        return _replace(initial, components=parts)
    expected = "uniform, moebius, or von_mises_fisher with its centers at the poles, for tokens"
    raise CaseError(f"initial.kind = {tag_of(type(initial))}: expected {expected}")
