"""Types of the sections of a case, from the tables of domains, of named options and of loaded components."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, reduce
from inspect import getdoc
from operator import or_
from typing import Any, Literal

import msgspec

from meanfield.case.case import Case
from meanfield.domains.table import DOMAINS
from meanfield.model.kernel import KERNELS
from meanfield.model.layer_norm import LAYER_NORMS
from meanfield.model.normalization import NORMALIZATIONS
from meanfield.sections.attention import Attention, FeedForward, Reaction
from meanfield.sections.evolution import Stabilizers
from meanfield.sections.initial import Initial
from meanfield.sections.section import OWN, Section


def convert(data: Mapping[str, Any]) -> Case:
    """Return the case of parsed tables. Raises msgspec.ValidationError for the first key of a wrong type or range."""
    found = msgspec.structs.asdict(msgspec.convert(data, type_of_case(data)))
    for name, section in {"attention": Attention, "stabilizers": Stabilizers}.items():
        found[name] = section(**msgspec.structs.asdict(found[name]))
    return Case(**found)


def type_of_case(data: Mapping[str, Any]) -> type[msgspec.Struct]:
    """Return the type to which the tables ``data`` of a case are converted.

    A component of one name may give densities and another component of that name tokens: the domain decides. The
    network is a component if ``feed_forward.field`` names one.
    """
    record = DOMAINS.get(_word(data, "domain", "manifold"))
    kinds = ("initial", "tokens") if record is not None and record.has_tokens else ("tokens", "initial")
    own = {name: section for kind in kinds for name, section in OWN[kind].items()}
    of_domains = (kind for domain in DOMAINS.values() for kind in domain.initial)
    return _section_type_like(
        Case,
        domain=_union(*DOMAINS.values()),
        initial=_union(*dict.fromkeys((*Initial.__args__, *of_domains, *own.values()))),
        reaction=_union(*Reaction.__args__, *OWN["reaction"].values(), None),
        feed_forward=OWN["feed_forward"].get(_word(data, "feed_forward", "field"), FeedForward) | None,
        attention=_section_type_like(Attention, kernel=Literal[*KERNELS], normalization=Literal[*NORMALIZATIONS]),
        stabilizers=_section_type_like(Stabilizers, layer_norm=Literal[*LAYER_NORMS]),
    )


def _word(data: Mapping[str, Any], section: str, key: str) -> str:
    """Return the value of a key in a section of a parsed TOML file as text, empty without this section."""
    table = data.get(section)
    return str(table.get(key)) if isinstance(table, dict) else ""


@cache
def _union(*kinds: type | None) -> Any:
    """Return the union of types."""
    return reduce(or_, kinds)


@cache
def _section_type_like(section: type[Section], **types: Any) -> type[msgspec.Struct]:
    """Return a type with the keys and defaults of a section, in which ``types`` replaces the types of some keys.

    The JSON Schema shows the docstring of this type: numpydoc's sections are left out.
    """
    fields = [
        (field.name, types.get(field.name, field.type), *(() if field.required else (field.default,)))
        for field in msgspec.structs.fields(section)
    ]
    names = {"__doc__": str(getdoc(section)).partition("\n\nParameters\n")[0]}
    return msgspec.defstruct(section.__name__, fields, namespace=names, frozen=True, forbid_unknown_fields=True)
