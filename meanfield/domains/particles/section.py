"""Section [domain] of tokens as particles in R^d, on the sphere S^{d−1} or in all of R^d, depending on the layer
norm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import Meta

from meanfield.domains.domain import Domain
from meanfield.domains.sphere.section import ON_SPHERES, vector_problems
from meanfield.model.layer_norm import LAYER_NORMS, RADIAL_NORMS
from meanfield.sections.initial import Equiangular, Gaussian, Points, Snapshot, Tokens, Waves
from meanfield.sections.section import Count, Key, Problems, Seed

if TYPE_CHECKING:
    from meanfield.case.case import Case

MAX_DEGREE = 200  # of a field from which tokens are drawn
MAX_NUMBERS = 10**9  # coordinates of all tokens together: 8 GB a state, several of which a method stores
MAX_ATOM_DIMENSION = 128  # for at least four atoms, whose velocity is differentiated by each coordinate


class Particles(Domain, frozen=True, kw_only=True, tag="particles"):
    """Section [domain] of particles: ``count`` tokens in R^d, where d is ``dimension``.

    The tokens are drawn from the initial density by ``seed``. With given points, ``count`` is the number of
    points. With a file, ``count`` is left out, since the file determines the number of tokens.
    """

    typical: ClassVar = {"dimension": 3, "count": 64}
    phenomena: ClassVar = ("clusters", "noise", "drift", "collapse")
    set_up: ClassVar = "meanfield.domains.particles.setup:set_up_particles"
    diagnostics: ClassVar = "meanfield.domains.particles.diagnostics:DIAGNOSTICS"
    batch: ClassVar = "meanfield.domains.particles.batch:BATCH"
    layer_norms: ClassVar = tuple(LAYER_NORMS)
    radial_norms: ClassVar = RADIAL_NORMS
    initial: ClassVar = (*ON_SPHERES, Gaussian, Equiangular, Waves)
    features: ClassVar = frozenset(
        {"matrices", "heads", "file", "kernels", "sinkhorn", "causal mask", "pattern", "feed-forward", "noise", "gate",
         "scale", "layers", "adaptive", "sequence", "handover", "linear stability"}
    )  # fmt: skip
    has_tokens: ClassVar = True
    figure: ClassVar = (
        "meanfield.figures.particles.panels:draw_particles", "meanfield.figures.particles.panels:particles_height"
    )  # fmt: skip
    movie: ClassVar = "meanfield.movie.particles:draw_tokens"

    dimension: Annotated[int, Meta(ge=1, le=4096)] | None = None  # set in a resolved case
    count: Count | None = None
    seed: Seed = 0

    about: ClassVar = {
        "dimension": Key("d of R^d; 1 only without layer norm; by default that of the points or the file, else 3", 64),
        "count": Key("number of tokens", 1000),
        "seed": Key("seed of the draw from the initial density", 1),
    }

    @property
    def d(self) -> int:
        """Return the dimension d of the space R^d of the tokens, 3 by default."""
        return self.dimension or 3

    @property
    def location(self) -> str:
        """Return the text that names the place of tokens in messages."""
        return "for particles"

    @property
    def max_degree(self) -> int:
        """Return the highest degree of an initial density from which tokens are drawn."""
        return MAX_DEGREE

    def resolved(self, case: Case) -> Domain:
        """Return this section [domain] with the number and dimension of tokens, from points in [initial] if any."""
        points = case.initial.points if isinstance(case.initial, Points) else ()
        count = self.count if self.count is not None or not points else len(points)
        dimension = self.dimension or (len(points[0]) if points else 3)
        return msgspec.structs.replace(self, count=count, dimension=dimension)

    def problems(self, case: Case) -> Problems:
        """Yield the errors of the number of tokens and of their dimension: key, value, and what is expected."""
        initial, of_file = case.initial, isinstance(case.initial, Tokens | Snapshot)
        if self.count is None and not of_file:
            yield "domain.count", None, "how many tokens, an integer >= 1"
        if isinstance(initial, Points) and self.count != len(initial.points):
            yield "domain.count", self.count, f"{len(initial.points)}, the number of initial.points, or none"
        if of_file and self.count is not None:
            yield "domain.count", self.count, "not allowed with a file, which says how many tokens there are"
        if (self.count or 0) * self.d > MAX_NUMBERS:
            yield "domain.count", self.count, f"at most {MAX_NUMBERS // self.d} with domain.dimension = {self.d}"
        if case.handover is not None and self.d > MAX_ATOM_DIMENSION:
            yield "domain.dimension", self.d, f"at most {MAX_ATOM_DIMENSION} with a section [handover]"
        if case.sequence is not None and isinstance(initial, Points) and initial.masses is not None:
            yield "initial.masses", list(initial.masses), "not allowed with a section [sequence]: its tokens are alike"
        if self.d == 1 and case.stabilizers.layer_norm != "none":
            norm = case.stabilizers.layer_norm
            yield "domain.dimension", 1, f"at least 2 with stabilizers.layer_norm = {norm}: no sphere to move on"
        if self.d == 1 and case.handover is not None:
            yield "domain.dimension", 1, "at least 2 with a section [handover]"
        if isinstance(initial, Gaussian) and not case.tokens_have_radius:
            norm = case.stabilizers.layer_norm
            yield "initial.kind", "gaussian", f"another with stabilizers.layer_norm = {norm}: no radius"

    def point_problems(self, key: str, point: tuple[float, ...]) -> Problems:
        """Yield an error for a point that is zero or too large to have a direction."""
        yield from vector_problems(key, point)
