"""Components in a case: their sections, and the components that a case names."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from meanfield.components.component import KINDS, LOADED, Component
from meanfield.sections.initial import InitialKind, OwnDensity, OwnTokens
from meanfield.sections.section import Section, tag_of

if TYPE_CHECKING:
    from meanfield.case.case import Case


class OwnFeedForward(Section, frozen=True):
    """Base of sections [feed_forward] with the field of a component."""

    @property
    def activation(self) -> str:
        """Return the name of the component that replaces the network; captions show it in place of an activation."""
        return tag_of(self)


def components_of_case(case: Case) -> list[Component]:
    """Return the loaded user-defined components, such as kernels or reactions, that a case names."""
    names = {
        "kernel": [case.attention.kernel],
        "layer_norm": [case.stabilizers.layer_norm],
        "diagnostic": list(case.output.diagnostics or ()),
    }
    for kind in ("reaction", "feed_forward", "tokens" if case.domain.has_tokens else "initial"):
        section = getattr(case, KINDS[kind].section)
        names[kind] = [] if section is None else [tag_of(section)]
    return [LOADED[kind, name] for kind, found in names.items() for name in found if (kind, name) in LOADED]


def components_attribute(case: Case) -> dict[str, str]:
    """Return the attribute ``components`` of a run's file: a line "kind name sha256" for each component.

    The result is empty without components.
    """
    lines = [f"{one.kind} {one.name} {one.sha256}" for one in components_of_case(case)]
    return {"components": "\n".join(lines)} if lines else {}


def section_of(component: Component) -> type[Section]:
    """Return the class of the section by which a case names a component: its keys are the component's parameters.

    The types of the keys are those of the defaults.
    """
    defaults = ((name, _hashable(value)) for name, value in sorted(component.parameters.items()))
    return _section(component.kind, component.name, tuple((name, type(value), value) for name, value in defaults))


def _hashable(value: object) -> object:
    """Return a value with tuples in place of lists."""
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


@cache
def _section(kind: str, name: str, fields: tuple[tuple[str, type, object], ...]) -> type[Section]:
    """Return a new class of sections, with the given fields, for a user-defined component."""
    bases = {"initial": OwnDensity, "tokens": OwnTokens, "feed_forward": OwnFeedForward}
    return msgspec.defstruct(  # type: ignore[return-value]
        name, fields, bases=(bases.get(kind, Section),), frozen=True, kw_only=True,
        forbid_unknown_fields=True, tag_field=KINDS[kind].key, tag=name,
    )  # fmt: skip


def parameters_of(section: Section) -> dict[str, object]:
    """Return the parameters of a component given in a section, without the keys shared by all initial kinds."""
    shared = InitialKind.__struct_fields__ if isinstance(section, InitialKind) else ()
    return {name: getattr(section, name) for name in section.__struct_fields__ if name not in shared}
