"""Table of the kinds of domain, by their names in case files and run files."""

from __future__ import annotations

from collections.abc import Mapping

from meanfield.domains.axisymmetric.section import Axisymmetric
from meanfield.domains.domain import Domain
from meanfield.domains.free_radius.section import FreeRadiusCircle, FreeRadiusSphere, LogRadius
from meanfield.domains.line.section import Line
from meanfield.domains.particles.section import Particles
from meanfield.domains.sphere.section import Circle, Sphere
from meanfield.domains.trained.section import Trained
from meanfield.sections.section import tag_of

DOMAINS: dict[str, type[Domain]] = {
    tag_of(kind): kind
    for kind in (Circle, Sphere, Axisymmetric, Line, FreeRadiusCircle, FreeRadiusSphere, Particles, Trained)
}


def canonicalize_manifold(data: Mapping[str, object]) -> None:
    """Replace an alias in ``domain.manifold`` of a case, such as S2, by the name of the kind of domain."""
    domain = data.get("domain")
    if isinstance(domain, dict) and isinstance(word := domain.get("manifold"), str):
        domain["manifold"] = next((name for name, kind in DOMAINS.items() if word in kind.aliases), word)


def kind_of(manifold: str) -> type[Domain]:
    """Return the domain record for the name of a manifold in a run file.

    Raises FileError for an unknown manifold.
    """
    from solvers.io.run_file import FileError

    if manifold == tag_of(LogRadius):  # the name in figures
        return LogRadius
    if manifold not in DOMAINS:
        raise FileError(f"manifold {manifold!r}: expected one of {', '.join(DOMAINS)}; is this a run file?")
    return DOMAINS[manifold]
