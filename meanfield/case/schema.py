"""Schema of a case file: a JSON Schema for editors, and a list of keys for readers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from meanfield.case.types import type_of_case
from meanfield.domains.table import DOMAINS
from meanfield.sections.section import Key, Section

_LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤"}
_TYPES = {"number": "a number", "integer": "an integer", "string": "a text", "boolean": "true or false"}


class Entry(NamedTuple):
    """Key of a case file with its description.

    ``variant`` is the manifold or kind that has the key, if not all kinds of the section have it.
    """

    name: str
    variant: str
    expected: str
    default: str  # in TOML; "required" or "none"
    unit: str
    description: str
    example: str  # in TOML


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a case file, each key with its description, an example and its unit."""
    whole = _schema()
    for kind in DOMAINS.values():
        manifold = whole["$defs"][kind.__name__]["properties"]["manifold"]
        manifold["enum"] = [*manifold["enum"], *kind.aliases]
    return whole


def _schema() -> dict[str, Any]:
    """Return the JSON Schema of a case file with one name for each manifold, without aliases."""
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(type_of_case({}))}
    for section in _sections(Section):
        for name, value in whole["$defs"].get(section.__name__, {}).get("properties", {}).items():
            if (key := _describe_key(section, name)) is not None:
                unit = {"unit": key.unit} if key.unit else {}
                value |= {"description": key.description, "examples": [key.example], **unit}
                if "exclusiveMinimum" in value and value.get("default") in (0, None):  # other keys determine it
                    value.pop("default", None)
            elif _is_tag(value):
                value |= {"description": str(section.__doc__).partition("\n")[0], "examples": value["enum"]}
    return whole


def entries(prefix: str = "") -> list[Entry]:
    """Return the descriptions of the keys that begin with ``prefix``, in the order of a case file."""
    whole = _schema()
    found = (entry for entry in _entries(whole, whole["$defs"]["Case"], "") if entry.name.startswith(prefix))
    return list(dict.fromkeys(_merge_entries(found)))


def _sections(base: type[Section]) -> Iterator[type[Section]]:
    """Yield all direct and indirect subclasses of a section."""
    for section in base.__subclasses__():
        yield section
        yield from _sections(section)


def _describe_key(section: type[Section], name: str) -> Key | None:
    """Return the description of a key from the class that defines it or from one of its bases."""
    tables = (vars(base).get("about", {}) for base in section.__mro__)
    return next((table[name] for table in tables if name in table), None)


def _entries(whole: Mapping[str, Any], node: Mapping[str, Any], path: str, variant: str = "") -> Iterator[Entry]:
    """Yield the entries of the keys of a node of the JSON schema, and of the sections that it refers to."""
    for name, value in node["properties"].items():
        key = f"{path}{name}"
        if "description" in value:
            required = name in node.get("required", ())
            default = "required" if required else _toml(value.get("default"))
            unit, example = value.get("unit", ""), _toml(value["examples"][0])
            yield Entry(key, variant, _describe_values(value), default, unit, value["description"], example)
        for reference in _references(value):
            section = whole["$defs"][reference]
            inner = f"{key}[]." if _is_list(value) else f"{key}."
            yield from _entries(whole, section, inner, _word(section) or variant)


def _merge_entries(found: Iterator[Entry]) -> Iterator[Entry]:
    """Yield the entries of keys, with one entry for all manifolds or kinds that share a key."""
    alike: dict[Entry, list[str]] = {}
    for entry in found:
        alike.setdefault(entry._replace(variant=""), []).append(entry.variant)
    for entry, variants in alike.items():
        yield entry._replace(variant=", ".join(dict.fromkeys(filter(None, variants))))


def _references(value: object) -> Iterator[str]:
    """Yield the names of the sections that are allowed as a value, given the JSON Schema of the value."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].rpartition("/")[2]
        for part in (value.get("anyOf"), value.get("items")):
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


def _is_list(value: Mapping[str, Any]) -> bool:
    """Return whether a key of the JSON schema is a list of sections."""
    return any(
        part.get("type") == "array" and "$ref" in part.get("items", {}) for part in [value, *value.get("anyOf", [])]
    )


def _is_tag(value: Mapping[str, Any]) -> bool:
    """Return whether a key, given its JSON Schema, selects one kind of a section, such as ``manifold``."""
    return len(value.get("enum", ())) == 1


def _word(section: Mapping[str, Any]) -> str:
    """Return the tag, such as "circle", by which a case selects a kind of a section; empty without a tag."""
    tags = (value for value in section["properties"].values() if _is_tag(value))
    return next((tag["enum"][0] for tag in tags), "")


def _describe_values(value: Mapping[str, Any]) -> str:
    """Return a description of the allowed values of a key, given its JSON Schema."""
    if "anyOf" in value:
        parts = (_describe_values(part) for part in value["anyOf"] if part.get("type") != "null")
        return " or ".join(dict.fromkeys(parts))
    if "$ref" in value:
        return "a table"
    if "enum" in value:
        return " | ".join(str(choice) for choice in value["enum"] if choice is not None)
    if value.get("type") == "array":
        return f"a list of {_plural(_describe_values(value.get('items', {})))}"
    limits = ", ".join(f"{sign} {value[name]:g}" for name, sign in _LIMITS.items() if name in value)
    return f"{_TYPES[value['type']]} {limits}".rstrip()


def _plural(text: str) -> str:
    """Return the plural of a description such as "a number > 0"."""
    head, _, rest = text.removeprefix("an ").removeprefix("a ").partition(" ")
    return f"{head}s {rest}".rstrip()


def _toml(value: object) -> str:
    """Return a value in TOML on one line."""
    if value is None:
        return "none"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
