"""Record of a kind of domain: all properties that the rest of the package uses, so that no code compares names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from meanfield.sections.section import Problems, Section

if TYPE_CHECKING:
    from meanfield.case.case import Case

MAX_CELLS = 10**8  # of all radii or labels together: about 40 GB


def load(dotted: str) -> Any:
    """Import the module and return the object named ``module:attribute``.

    The names come from the records of this package alone.
    """
    module, _, attribute = dotted.partition(":")
    return getattr(import_module(module), attribute)


class DefaultResolution(NamedTuple):
    """Default of ``domain.resolution``: ``per_width`` cells per smallest scale across ``extent``, at most ``most``.

    The smallest scale is the kernel width 1/√β. With n cells per kernel width, two points merge 100/n² % too early:
    0.4 % for 16, 1.7 % for 8, measured on circle and sphere at β = 4 and 9.
    """

    extent: float
    per_width: int
    most: int

    def of_width(self, width: float) -> int:
        """Return the default resolution, a multiple of 16, for the smallest scale ``width``."""
        return 16 * math.ceil(min(self.extent * self.per_width / width, self.most) / 16)


class Domain(Section, frozen=True, kw_only=True, tag_field="manifold"):
    """Section [domain] of a case, base of the records of all kinds of domain.

    A subclass is the section of one kind, with further properties as class variables. Names of functions are
    "module:function"; they are imported at first use.
    """

    aliases: ClassVar[tuple[str, ...]] = ()  # other names in case files
    typical: ClassVar[Mapping[str, Any]] = {}  # keys of a new case, beside manifold
    phenomena: ClassVar[tuple[str, ...]] = ()  # entries of meanfield.case.catalogue.PHENOMENA that new cases show here
    set_up: ClassVar[str]  # (case, backend) → Problem
    diagnostics: ClassVar[str]  # name → meanfield.diagnostics.table.Diagnostic
    batch: ClassVar[str | None] = None  # meanfield.domains.common.batch.Batch, where small cases are solved together
    layer_norms: ClassVar[tuple[str, ...]]
    initial: ClassVar[tuple[type, ...]]  # kinds of [initial]
    features: ClassVar[frozenset[str]] = frozenset()  # keys of meanfield.case.combinations.OPTIONS
    ambient: ClassVar[int]  # d of the ambient R^d of the tokens, where no key sets it
    default_resolution: ClassVar[DefaultResolution] = DefaultResolution(0.0, 0, 0)  # without cells
    mesh: ClassVar[str | None] = None  # resolution → Mesh, where one number determines the mesh
    is_closed: ClassVar[bool] = False  # a mesh of unit vectors; runs can begin with a run on other cells
    has_tokens: ClassVar[bool] = False  # a state is positions of tokens instead of a density on cells
    has_radius: ClassVar[bool] = False  # tokens have a radius beside their direction
    radial_norms: ClassVar[tuple[str, ...]] = ()  # layer norms with which tokens have a radius here
    bounded_speed: ClassVar[bool] = False  # |X| ≤ Case.speed_bound
    coordinates: ClassVar[int | None] = None  # length of a point of [initial], if not d
    formula: ClassVar[tuple[str, ...]] = ()  # coordinates in formulas of [initial]
    unit_vectors: ClassVar[bool] = True  # a point is a vector whose direction matters
    # properties of files
    # units and long_name of ρ
    measure: ClassVar[tuple[str, str]] = ("1", "density of tokens with respect to cell_area")
    edges: ClassVar[str | None] = None  # dataset of the edges between cells
    space: ClassVar[str | None] = None  # space in which tokens are compared: S1, S2, R1, ...
    directions: ClassVar[type[Domain] | None] = None  # the domain of the directions, where tokens have a radius
    uniform: ClassVar[str | None] = None  # dataset of the uniform distribution, to which entropies are relative
    volume: ClassVar[float] = 1.0  # of the space, where figures show ρ in units of the uniform density
    # properties of figures and exports
    figure: ClassVar[tuple[str, str]]  # drawing of the snapshots, and the height of the figure
    movie: ClassVar[str]
    stage: ClassVar[str | None] = None  # of the page of `view`
    coordinate: ClassVar[str | None] = None  # of one-dimensional cells, in figures
    ends: ClassVar[tuple[str, str]] = ("left end", "right end")  # of an unbounded mesh
    shows_rings: ClassVar[bool] = False  # the size of a mesh is reported as the number of rings of latitude
    netcdf: ClassVar[str | None] = None  # cells of each ring → regular grid
    vtkhdf: ClassVar[str | None] = None  # cells of each ring → geometry

    @property
    def manifold(self) -> str:
        """Return the name of this kind of domain in case files and run files."""
        return str(self.__struct_config__.tag)

    @property
    def d(self) -> int:
        """Return the dimension d of the space R^d in which tokens are vectors."""
        return self.ambient

    @property
    def location(self) -> str:
        """Return the text that names the place of tokens in messages, such as "on the sphere"."""
        return f"on the {self.manifold}"

    @property
    def has_softmax(self) -> bool:
        """Return whether attention.beta sets the steepness of attention; False for models with other attention.

        Files of such models can be read.
        """
        return True

    @property
    def describe_layer(self) -> list[str]:
        """Return texts on the layer that follow from this section [domain], such as "without biases"; usually none."""
        return []

    @property
    def labels(self) -> int | None:
        """Return the number of labels of a causal mask; None without a mask.

        A label is a position in the sequence of tokens. Each label has a density of its own.
        """
        return None

    @property
    def count(self) -> int | None:
        """Return the number of tokens; None for a density."""
        return None

    @property
    def resolution(self) -> int | None:
        """Return the number of cells of a curve, or of rings of the sphere from pole to pole.

        None for particles, and before the default of a case is filled in.
        """
        return None

    @property
    def cells_across(self) -> int:
        """Return the resolution; where a case does not set it yet, the smallest default resolution of the domain."""
        return self.resolution or self.default_resolution.of_width(1.0)

    @property
    def expansion(self) -> float:
        """Return the exponent of the growth e^{expansion·t} of a radial mesh, 0 for other meshes."""
        return 0.0

    @property
    def is_single_precision(self) -> bool:
        """Return whether states are in single precision, float32."""
        return False

    @property
    def max_degree(self) -> int | None:
        """Return the highest degree of an initial density that the cells resolve; None where there are no degrees."""
        return None

    def resolved(self, case: Case) -> Domain:
        """Return this section [domain] with those defaults filled in that depend on other sections of the case."""
        if self.resolution is not None or not self.default_resolution.extent:
            return self
        return msgspec.structs.replace(self, resolution=self.default_resolution.of_width(self.smallest_scale(case)))

    def smallest_scale(self, case: Case) -> float:
        """Return the width 1/√β of the kernel of a case, as an angle where layer norm fixes the radius; at most 1."""
        return 1 / math.sqrt(max(abs(case.beta_on_unit_sphere), 1.0))

    def problems(self, case: Case) -> Problems:
        """Yield the errors of this section [domain] beyond types and ranges: the key, its value, and what is expected.

        The errors include options that this kind of domain excludes.
        """
        yield from ()

    def point_problems(self, key: str, point: tuple[float, ...]) -> Problems:
        """Yield the errors of a point in the section [initial], beyond the count of its numbers."""
        yield from ()

    def estimates(self, case: Case) -> list[str]:
        """Return lines about the expected accuracy of a run of the case, for the command `check`."""
        return []

    def cells_and_width(self) -> tuple[int, float]:
        """Return the number of cells and the approximate width of the narrowest; (0, 0.0) for particles."""
        return 0, 0.0
