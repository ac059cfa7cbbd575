"""Record of a kind of domain: all that the rest of the package asks of one, so that nothing compares its name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from meanfield.sections.section import Problems, Section

if TYPE_CHECKING:
    from meanfield.case.case import Case

MAX_CELLS = 10**8  # of all radii or labels together: about 40 GB


def load(dotted: str) -> Any:
    """The object named ``module:attribute``, imported now. Names come from this package's records alone."""
    module, _, attribute = dotted.partition(":")
    return getattr(import_module(module), attribute)


class Domain(Section, frozen=True, kw_only=True, tag_field="manifold"):
    """Base of the records: a subclass is the section [domain] of its kind, and states the rest as class variables.

    Names of functions are "module:function", imported when they are used.
    """

    aliases: ClassVar[tuple[str, ...]] = ()  # other words for it in case files
    typical: ClassVar[Mapping[str, Any]] = {}  # keys of a new case, beside manifold
    phenomena: ClassVar[tuple[str, ...]] = ()  # of meanfield.case.catalogue.PHENOMENA that new cases show here
    set_up: ClassVar[str]  # (case, backend) → Problem
    diagnostics: ClassVar[str]  # name → meanfield.diagnostics.table.Diagnostic
    batch: ClassVar[str | None] = None  # meanfield.domains.common.batch.Batch, where small cases are solved together
    layer_norms: ClassVar[tuple[str, ...]]
    initial: ClassVar[tuple[type, ...]]  # kinds of [initial]
    features: ClassVar[frozenset[str]] = frozenset()  # keys of meanfield.case.combinations.OPTIONS
    ambient: ClassVar[int]  # d of the R^d in which tokens are, where no key says it
    mesh: ClassVar[str | None] = None  # resolution → Mesh, where one number says it all
    is_closed: ClassVar[bool] = False  # a mesh of unit vectors on which runs with other cells can begin and be followed
    has_tokens: ClassVar[bool] = False  # a state is positions of tokens instead of a density on cells
    has_radius: ClassVar[bool] = False  # tokens have a radius beside their direction
    radial_norms: ClassVar[tuple[str, ...]] = ()  # layer norms with which tokens have a radius here
    bounded_speed: ClassVar[bool] = False  # |X| ≤ Attention.speed_bound
    coordinates: ClassVar[int | None] = None  # numbers that locate a point of [initial], if not d
    formula: ClassVar[tuple[str, ...]] = ()  # coordinates in formulas of [initial]
    unit_vectors: ClassVar[bool] = True  # these numbers are a vector whose direction counts
    # files
    measure: ClassVar[tuple[str, str]] = ("1", "density of tokens with respect to cell_area")  # units, long_name of ρ
    edges: ClassVar[str | None] = None  # dataset of the edges between cells
    space: ClassVar[str | None] = None  # where tokens are compared: S1, S2, R1, ...
    directions: ClassVar[type[Domain] | None] = None  # the domain of their directions, where tokens have a radius
    uniform: ClassVar[str | None] = None  # dataset of the uniform distribution, to which entropies are relative
    volume: ClassVar[float] = 1.0  # of the space, where figures show ρ in units of the uniform density
    # pictures and exports
    figure: ClassVar[tuple[str, str]]  # drawing of the snapshots, and its height
    movie: ClassVar[str]
    stage: ClassVar[str | None] = None  # of the page of `view`
    coordinate: ClassVar[str | None] = None  # of one-dimensional cells, in figures
    ends: ClassVar[tuple[str, str]] = ("left end", "right end")  # of an unbounded mesh
    shows_rings: ClassVar[bool] = False  # the size of a mesh is reported as its rings of latitude
    netcdf: ClassVar[str | None] = None  # cells of each ring → regular grid
    vtkhdf: ClassVar[str | None] = None  # cells of each ring → geometry

    @property
    def manifold(self) -> str:
        """The word for this kind of domain in case files and run files."""
        return str(self.__struct_config__.tag)

    @property
    def d(self) -> int:
        """The d of the ambient R^d."""
        return self.ambient

    @property
    def where(self) -> str:
        """This kind of domain as messages name it."""
        return f"on the {self.manifold}"

    @property
    def has_softmax(self) -> bool:
        """Whether attention.beta says how steep attention is; not so in files of models with other attention."""
        return True

    @property
    def layer_in_words(self) -> list[str]:
        """What a layer consists of beyond the other sections of a case."""
        return []

    @property
    def labels(self) -> int | None:
        """Labels of a causal mask, each with a density of its own; None without them."""
        return None

    @property
    def count(self) -> int | None:
        """How many tokens; None for a density."""
        return None

    @property
    def resolution(self) -> int | None:
        """Cells of a curve, or rings of the sphere from pole to pole; None for particles."""
        return None

    @property
    def expansion(self) -> float:
        """The rate e^{expansion·t} at which a mesh of radii grows."""
        return 0.0

    @property
    def in_single(self) -> bool:
        """Whether states are in float32."""
        return False

    @property
    def max_degree(self) -> int | None:
        """The highest degree of an initial density that the cells resolve; None where there are no degrees."""
        return None

    def resolved(self, case: Case) -> Domain:
        """The same with the defaults that depend on other sections."""
        return self

    def problems(self, case: Case) -> Problems:
        """What is wrong with this section beyond types and ranges, and what only this kind of domain excludes."""
        yield from ()

    def point_problems(self, key: str, point: tuple[float, ...]) -> Problems:
        """What is wrong with the numbers that locate a point of [initial], beyond their count."""
        yield from ()

    def estimates(self, case: Case) -> list[str]:
        """Lines about the accuracy to expect, for `check`."""
        return []

    def cells_and_width(self) -> tuple[int, float]:
        """How many cells, and about how wide the narrowest are; (0, 0.0) for particles."""
        return 0, 0.0
