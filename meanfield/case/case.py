"""Case: the resolved content of a case file, with all of its sections."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from meanfield.domains.domain import Domain, load
from meanfield.sections.attention import Attention, FeedForward, Reaction, scale_of
from meanfield.sections.evolution import Handover, Output, Stabilizers, Time, TokenSequence
from meanfield.sections.initial import InitialKind
from meanfield.sections.section import Key, Section, tag_of

if TYPE_CHECKING:
    from meanfield.case.given import GivenInitial
    from meanfield.case.overrides import Overrides
    from meanfield.diagnostics.table import Diagnostic, Table

_MAX_TOKENS_FOR_PAIRS = 1000  # tokens; beyond, diagnostics over all pairs are recorded only on request


class Case(Section, frozen=True):  # types.py builds the type that a file is converted to
    """Resolved content of a case file, which determines a run.

    Each section is a record of :mod:`meanfield.case`, or a table as in a case file, such as ``dict(beta=4)``.

    Parameters
    ----------
    domain : record of meanfield.case, such as Circle
        Domain of the tokens and its resolution: section [domain].
    attention : meanfield.case.Attention
        Inverse temperature β, kernel, normalization and matrices: section [attention].
    initial : record of meanfield.case, such as Perturbed
        Initial density or tokens: section [initial]. Also an array or a function, see :func:`~meanfield.load_case`.
    time : meanfield.case.Time
        Final time, method and step: section [time].
    title : str
        One line for figures and lists.
    feed_forward : meanfield.case.FeedForward, optional
        Network F that is added to attention: section [feed_forward].
    reaction : record of meanfield.case, such as Logistic, optional
        Local rate of change R[ρ] of the density: section [reaction].
    stabilizers : meanfield.case.Stabilizers
        Layer norm, residual, gate and noise: section [stabilizers].
    sequence : meanfield.case.TokenSequence, optional
        Positions of particles in a sequence, with diffusion between neighbors: section [sequence].
    handover : meanfield.case.Handover, optional
        Replacement of a collapsed density, or of particles, by one point mass for each cluster: section [handover].
    output : meanfield.case.Output
        Times of snapshots, and recorded diagnostics: section [output].

    Notes
    -----
    A case with a table among its sections is validated like a file, which raises :class:`~meanfield.CaseError`. The
    values of records are not checked by the constructor. :func:`~meanfield.load_case`, :func:`~meanfield.simulate` and
    :func:`~meanfield.run` validate a case and fill in the defaults that depend on other sections.

    In the properties, g is the radius ``stabilizers.scale`` of the sphere on which layer norm keeps tokens, β is
    ``attention.beta`` and κ is ``stabilizers.noise``.

    Examples
    --------
    >>> import meanfield as mf
    >>> circle, beta = dict(manifold="circle", resolution=32), dict(beta=4)
    >>> case = mf.Case(domain=circle, attention=beta, initial=dict(kind="perturbed"), time=dict(end=2))
    >>> from meanfield.case import Attention, Circle, Perturbed, Time
    >>> case = mf.Case(Circle(resolution=32), Attention(beta=4.0), Perturbed(seed=1), Time(end=2.0))
    >>> case = mf.load_case(case)
    >>> case.time.method, case.output.snapshots
    ('ssprk3', 100)
    >>> case.replace({"attention.beta": 9}).attention.beta
    9.0
    """

    domain: Domain
    attention: Attention
    initial: InitialKind
    time: Time = Time()
    title: str = ""

    about: ClassVar = {"title": Key("one line for figures and lists", "Two clusters on the sphere")}
    feed_forward: FeedForward | None = None
    reaction: Reaction | None = None
    stabilizers: Stabilizers = Stabilizers()
    sequence: TokenSequence | None = None
    handover: Handover | None = None
    output: Output = Output()

    if TYPE_CHECKING:

        def __init__(
            self,
            domain: Domain | Mapping[str, Any],
            attention: Attention | Mapping[str, Any],
            initial: InitialKind | Mapping[str, Any] | GivenInitial,
            time: Time | Mapping[str, Any] = ...,
            title: str = ...,
            feed_forward: FeedForward | Mapping[str, Any] | None = ...,
            reaction: Reaction | Mapping[str, Any] | None = ...,
            stabilizers: Stabilizers | Mapping[str, Any] = ...,
            sequence: TokenSequence | Mapping[str, Any] | None = ...,
            handover: Handover | Mapping[str, Any] | None = ...,
            output: Output | Mapping[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Replace sections that are tables, arrays or functions by the records of the validated case."""
        sections = msgspec.structs.asdict(self)
        if isinstance(self.initial, InitialKind) and not any(isinstance(each, Mapping) for each in sections.values()):
            return
        from meanfield.case.given import split_initial
        from meanfield.case.load import parse_sections

        defaults = {field.name: field.default for field in msgspec.structs.fields(type(self))}
        tables, initial = split_initial(sections)
        given = {name: section for name, section in tables.items() if section != defaults[name]}
        case = parse_sections(given, initial=initial)
        for name in sections:
            msgspec.structs.force_setattr(self, name, getattr(case, name))

    def replace(
        self, changes: Overrides = (), initial: GivenInitial | Mapping[str, Any] | None = None, **short: Any
    ) -> Case:
        """Return a copy of the case with changes of some keys, validated.

        If the case records all default diagnostics, the new case records those of its own domain.

        Parameters
        ----------
        changes : mapping or sequence of str
            Values by keys or short names, such as ``{"attention.beta": 4}`` or ``{"beta": 4}``, or texts such as
            ``["attention.beta=4"]``.
        initial : array, function, mapping or str, optional
            Initial density or tokens, see :func:`~meanfield.load_case`; also allowed among the changes.
        **short
            Values by short names, such as ``beta=4``, see :func:`~meanfield.load_case`.

        Returns
        -------
        Case
            The new case.

        Raises
        ------
        CaseError
            If a change or the new case is not valid.

        Examples
        --------
        >>> import meanfield as mf
        >>> case = mf.load_case("metastable_circle").replace(beta=4, end=2)
        >>> case == mf.load_case("metastable_circle", {"attention.beta": 4, "time.end": 2})
        True
        """
        from meanfield.case.given import split_initial
        from meanfield.case.load import parse, to_toml
        from meanfield.case.short_names import overrides_of_case

        changes, among_changes = split_initial(changes)
        short, given = split_initial(short if initial is None else {**short, "initial": initial})
        overrides, output = [*overrides_of_case(changes), *overrides_of_case(short)], self.output
        if any(text.startswith("domain") for text in overrides) and output.diagnostics == self.default_diagnostics:
            output = msgspec.structs.replace(output, diagnostics=None)
        return parse(
            to_toml(msgspec.structs.replace(self, output=output)),
            overrides,
            among_changes if given is None else given,
        )

    def _repr_html_(self) -> str:
        """Return the title and the layer as HTML, above a folded case file."""
        from meanfield.case.load import to_toml
        from meanfield.case.summary import describe_layer

        words = html.escape(f"{tag_of(self.domain)}, β = {self.attention.beta:g}, {', '.join(describe_layer(self))}")
        file = f"<details><summary>case file</summary><pre>{html.escape(to_toml(self))}</pre></details>"
        return f"<div><b>{html.escape(self.title or 'Case')}</b></div><div>{words}</div>{file}"

    @property
    def possible_diagnostics(self) -> dict[str, Diagnostic]:
        """Return the diagnostics that ``output.diagnostics`` may name, by name, in the order of the domain's table."""
        table: Table = load(self.domain.diagnostics)
        return {name: entry for name, entry in table.items() if entry.possible(self)}

    @property
    def default_diagnostics(self) -> tuple[str, ...]:
        """Return the names of the diagnostics that are recorded unless ``output.diagnostics`` names others.

        Diagnostics of special studies are left out, the number of leaders where tokens attend most to themselves, and
        sums over all pairs of more than 1000 particles.
        """
        many = (self.domain.count or 0) > _MAX_TOKENS_FOR_PAIRS
        found = self.possible_diagnostics.items()
        return tuple(name for name, entry in found if entry.default(self) and not (many and entry.sums_pairs))

    @property
    def tokens_have_radius(self) -> bool:
        """Return whether each token has a variable distance from the origin, besides its direction."""
        return self.domain.has_radius or self.stabilizers.layer_norm in self.domain.radial_norms

    @property
    def beta_on_unit_sphere(self) -> float:
        """Return the inverse temperature of directions: βg² on a sphere of radius g, times the scales of Q and K."""
        return self.attention.beta_effective * self.stabilizers.scale**2

    @property
    def beta_of_heads(self) -> float:
        """Return the inverse temperature of directions without the scales of Q and K: βg² on a sphere of radius g."""
        return self.attention.beta * self.stabilizers.scale**2

    @property
    def rescaling(self) -> float:
        """Return the factor ``e^{−|β|}`` of rescaled kernels, β on the unit sphere; 1 unless ``attention.rescaled``."""
        return math.exp(-abs(self.beta_on_unit_sphere)) if self.attention.rescaled else 1.0

    @property
    def noise_on_unit_sphere(self) -> float:
        """Return κ/g², the noise of the directions of tokens on a sphere of radius g."""
        return self.stabilizers.noise / self.stabilizers.scale / self.stabilizers.scale

    @property
    def flow_steps(self) -> float:
        """Return an approximate upper bound of the number of time steps of a density, by the CFL condition.

        The bound requires bounded speeds, as with softmax. The bound is infinite for particles, which have no cells.
        """
        width = self.domain.cells_and_width()[1]
        return self.time.end * self.speed_bound / (self.time.cfl * width) if width else math.inf

    @property
    def speed_bound(self) -> float:
        """Return an upper bound of the angular velocity of any token by attention, if Q, K and V are multiples of I."""
        attention = self.attention
        return abs(attention.value_scale) * math.exp(attention.log_kernel_bound * self.stabilizers.scale**2)

    @property
    def is_gradient_flow(self) -> bool:
        """Return whether only softmax or unnormalized attention with Q = K = V = I moves tokens, with layer norm post.

        The rate of the entropy by attention then follows from the velocity. Noise and a reaction, which change the
        density without a velocity of tokens, are no part of this rate.
        """
        attention = self.attention
        ones = attention.is_scalar and all(
            scale_of(getattr(attention.all_heads[0], name)) == 1.0 for name in ("query", "key", "value")
        )
        plain = attention.kernel == "exponential" and attention.normalization != "sinkhorn"
        plain = plain and attention.mask == "none" and attention.pattern is None
        return ones and plain and self.stabilizers.layer_norm == "post" and self.feed_forward is None
