"""Table of the kinds of domain, by the word that case files and run files have for them."""

from __future__ import annotations

from typing import Any

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
_ALIASES = {alias: name for name, kind in DOMAINS.items() for alias in kind.aliases}
_PICTURED: dict[str, type[Domain]] = DOMAINS | {"radius": LogRadius}


def put_names_for_aliases(data: dict[str, Any]) -> None:
    """In the table of a case, ``domain.manifold`` by its own name where it has another word for it, such as S2."""
    domain = data.get("domain")
    if isinstance(domain, dict) and isinstance(word := domain.get("manifold"), str):
        domain["manifold"] = _ALIASES.get(word, word)


def kind_of(manifold: str) -> type[Domain]:
    """The record of the domain that a run file names. Raises FileError for a name that is none."""
    from solvers.io.run_file import FileError

    if manifold not in _PICTURED:
        raise FileError(f"manifold {manifold!r}: expected one of {', '.join(DOMAINS)}; is this a run file?")
    return _PICTURED[manifold]
