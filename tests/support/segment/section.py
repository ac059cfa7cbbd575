"""Section [domain] of a segment between two walls, and an additional kind of initial density."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from meanfield.domains.domain import Domain
from meanfield.sections.initial import Formula, Gaussian, InitialKind
from meanfield.sections.section import Key, Positive, Problems


class Step(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="step"):
    """A density constant on each side of ``at``, ``factor`` times larger on the right."""

    at: float = 0.0
    factor: Positive = 2.0

    about: ClassVar = {
        "at": Key("place of the step", 0.1),
        "factor": Key("density on the right over that on the left", 3.0),
    }

    def problems(self, domain: Domain) -> Problems:
        assert isinstance(domain, Segment)
        if abs(self.at) >= domain.half:
            yield "initial.at", self.at, f"a place within domain.half = {domain.half}"


class Segment(Domain, frozen=True, kw_only=True, tag="segment"):
    """A segment from −``half`` to ``half`` in ``resolution`` equal cells."""

    typical: ClassVar = {"resolution": 64, "half": 1.0}
    phenomena: ClassVar = ("blow_up",)
    aliases: ClassVar = ("box",)
    measure: ClassVar = ("1", "density of tokens with respect to length")
    set_up: ClassVar = "meanfield.domains.segment.setup:set_up_segment"
    diagnostics: ClassVar = "meanfield.domains.segment.diagnostics:DIAGNOSTICS"
    layer_norms: ClassVar = ("none",)
    initial: ClassVar = (Step, Formula, Gaussian)
    features: ClassVar = frozenset({"gate"})
    formula: ClassVar = ("x",)
    unit_vectors: ClassVar = False
    edges: ClassVar = "cell_edge"
    ambient: ClassVar = 1
    space: ClassVar = "R1"
    figure: ClassVar = ("meanfield.figures.profiles:draw_profiles", "meanfield.figures.profiles:profiles_height")
    movie: ClassVar = "meanfield.movie.pictures:draw_profile_and_history"
    stage: ClassVar = "meanfield.domains.segment.pictures:STAGE"
    coordinate: ClassVar = "meanfield.domains.segment.pictures:place"

    resolution: Annotated[int, Meta(ge=8, le=10**4)]
    half: Positive = 1.0

    about: ClassVar = {"resolution": Key("number of cells", 64), "half": Key("half of the length", 1.0)}

    def cells_and_width(self) -> tuple[int, float]:
        return self.resolution, 2 * self.half / self.resolution
