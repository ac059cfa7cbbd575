"""Components in a case: stand-ins while it is converted and checked, the components' own sections afterwards."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from meanfield.components.component import KINDS, LOADED, Component
from meanfield.domains.table import DOMAINS
from meanfield.model.errors import ArgumentError
from meanfield.sections.initial import Formula, InitialKind, Uniform
from meanfield.sections.section import Section, tag_of

if TYPE_CHECKING:
    from meanfield.case.case import Case

Replaced = dict[str, Any]  # by kind the component's section, or its name


class InvalidParameters(Exception):
    """A section that does not fit the ``schema`` of its component, with the ``cause``."""

    def __init__(self, section: str, table: dict[str, Any], schema: type, cause: msgspec.ValidationError) -> None:
        self.section, self.table, self.schema, self.cause = section, table, schema, cause


class OwnFeedForward(Section, frozen=True):
    """Base of sections [feed_forward] with a component's field."""

    @property
    def activation(self) -> str:
        """The field's name, where captions have the activation's."""
        return str(self.__struct_config__.tag)


def replace_by_builtin(data: dict[str, Any]) -> Replaced:
    """Replace the loaded components that a case names by built-in placeholders.

    Raises InvalidParameters and ArgumentError.
    """
    replaced: Replaced = {}
    for kind, place in KINDS.items():
        section = data.get(place.section)
        if place.placeholder is None or not isinstance(section, dict):
            continue
        name = section.get(place.key)
        if not isinstance(name, str) or (kind, name) not in LOADED or not _fits(kind, name, data):
            continue
        if place.has_section:
            schema = section_of(LOADED[kind, name])
            try:
                replaced[kind] = msgspec.convert(section, schema)
            except msgspec.ValidationError as error:
                raise InvalidParameters(place.section, section, schema, error) from None
            data[place.section] = dict(place.placeholder)
        else:
            replaced[kind] = name
            data[place.section] = section | {place.key: place.placeholder}
    return replaced


def _fits(kind: str, name: str, data: dict[str, Any]) -> bool:
    """Whether a kind is for the case's domain: ``initial`` is for densities, ``tokens`` for particles.

    Raises ArgumentError for a name of the other kind alone.
    """
    pair, domain = ("initial", "tokens"), data.get("domain")
    record = DOMAINS.get(str(domain.get("manifold"))) if isinstance(domain, dict) else None
    if kind not in pair or record is None:
        return True
    fitting = pair[record.has_tokens]
    if (fitting, name) not in LOADED or (Formula not in record.initial and Uniform not in record.initial):
        expected = f"a built-in one, or a component of kind {fitting}, with domain.manifold = {tag_of(record)}"
        raise ArgumentError("initial.kind", name, expected)
    return kind == fitting


def restore(case: Case, replaced: Replaced) -> Case:
    """The checked case with its components."""
    for kind, value in replaced.items():
        place = KINDS[kind]
        if not place.has_section:
            value = msgspec.structs.replace(getattr(case, place.section), **{place.key: value})
        case = msgspec.structs.replace(case, **{place.section: value})
    return case


def used_by(case: Case) -> list[Component]:
    """The components that a case names."""
    names = {
        "kernel": [case.attention.kernel],
        "layer_norm": [case.stabilizers.layer_norm],
        "diagnostic": list(case.output.diagnostics or ()),
    }
    for kind in ("reaction", "feed_forward", "tokens" if case.domain.has_tokens else "initial"):
        section = getattr(case, KINDS[kind].section)
        names[kind] = [] if section is None else [str(type(section).__struct_config__.tag)]
    return [LOADED[kind, name] for kind, found in names.items() for name in found if (kind, name) in LOADED]


def components_attribute(case: Case) -> dict[str, str]:
    """The attribute ``components`` of a run's file: a line "kind name sha256" for each; absent without any."""
    lines = [f"{one.kind} {one.name} {one.sha256}" for one in used_by(case)]
    return {"components": "\n".join(lines)} if lines else {}


def section_of(component: Component) -> type[Section]:
    """The section of a case that names a component: its parameters, of the types of their defaults."""
    defaults = ((name, _hashable(value)) for name, value in sorted(component.parameters.items()))
    return _section(component.kind, component.name, tuple((name, type(value), value) for name, value in defaults))


def _hashable(value: Any) -> Any:
    """Tuples in place of lists."""
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


@cache
def _section(kind: str, name: str, fields: tuple[tuple[str, type, Any], ...]) -> type[Section]:
    bases = {"initial": InitialKind, "tokens": InitialKind, "feed_forward": OwnFeedForward}
    return msgspec.defstruct(  # type: ignore[return-value]
        name, fields, bases=(bases.get(kind, Section),), frozen=True, kw_only=True,
        forbid_unknown_fields=True, tag_field=KINDS[kind].key, tag=name,
    )  # fmt: skip


def parameters_of(section: Any) -> dict[str, Any]:
    """The parameters that a component's section gives."""
    shared = InitialKind.__struct_fields__ if isinstance(section, InitialKind) else ()
    return {name: getattr(section, name) for name in section.__struct_fields__ if name not in shared}
