"""Single-line errors of a case: dotted key, invalid value, expected value. This module names no section."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import inspect as types

MIN_SIZE, _MAX_SIZE, _MAX_TIME = 1e-150, 1e150, 1e300
_MAX_DEPTH = 40  # nesting of tables and lists
_MAX_SHOWN = 60  # characters of a value, so that the expected value stays visible


class CaseError(ValueError):
    """Error of a case that cannot be run, with one line for each fault: key, value and expected values.

    Parameters
    ----------
    message : str
        Text of the error, shown to users unchanged.
    key : str
        Dotted key that the message concerns, or empty.
    parts : sequence of CaseError
        Single errors, if there are several.
    is_missing : bool
        Whether the key is missing.

    Examples
    --------
    >>> import meanfield as mf
    >>> try:
    ...     mf.load_case("uniform", {"attention.beta": -1})
    ... except mf.CaseError as error:
    ...     print(error)
    attention.beta = -1: expected a number >= 0
    """

    def __init__(
        self, message: str, key: str = "", parts: Sequence[CaseError] = (), *, is_missing: bool = False
    ) -> None:
        super().__init__(message)
        self.key, self.parts, self.is_missing = key, tuple(parts), is_missing

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self),), vars(self)


def all_of(errors: Sequence[CaseError]) -> CaseError:
    """Return one error for several: a single error unchanged, else one with a line for each."""
    return errors[0] if len(errors) == 1 else CaseError("\n".join(map(str, errors)), parts=errors)


def install(extra: str) -> str:
    """Return the command that installs an optional part of this package, given the name of the extra."""
    return f"pip install 'meanfield-transformers[{extra}]'"


def refusal(key: str, value: object, expected: str) -> CaseError:
    """Return the error ``key = value: expected ...``, or ``key = value: not allowed ...`` if no value is expected."""
    is_none = expected.startswith(("only allowed", "not allowed", "not available"))
    return CaseError(f"{key} = {show(value)}: {'' if is_none else 'expected '}{expected}", key)


def show(value: object) -> str:
    """Return ``value`` in TOML on one line, truncated if long."""
    text = repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False, default=str)
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def show_key(key: str) -> str:
    """Return ``key`` in TOML: bare if possible, else quoted."""
    return key if re.fullmatch(r"[\w-]+", key) and len(key) <= _MAX_SHOWN else show(key)


def did_you_mean(word: object, choices: Iterable[str]) -> str:
    """Return ``; did you mean "..."?`` for the choice nearest to ``word``, or an empty string if none is near."""
    matches = difflib.get_close_matches(str(word).lower(), list(choices), n=1)
    return f'; did you mean "{matches[0]}"?' if matches else ""


def refuse_unrepresentable(data: object) -> None:
    """Raise CaseError for infinite or NaN numbers, integers beyond 64 bits and deeply nested tables in parsed TOML."""
    for path, value in _parts(data):
        if len(path) > _MAX_DEPTH:
            raise CaseError(f"{_dotted(path)[:_MAX_SHOWN]}…: nested too deeply")
        if isinstance(value, float) and not math.isfinite(value):
            raise refusal(_dotted(path), value, "a finite number")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:  # decimal text of a long one is slow
            raise refusal(_dotted(path), hex(value), "a number of at most 64 bits")


def refuse_extremes(data: object) -> None:
    """Raise CaseError for numbers of a case so large or small that squares, quotients or sums overflow or underflow.

    Times may be larger than other numbers: a metastable state of atoms has a lifetime of order e^{2β}.
    """
    for path, value in _parts(data):
        if isinstance(value, float) and value:
            largest = _MAX_TIME if path[0] in ("time", "output") else _MAX_SIZE
            if not MIN_SIZE <= abs(value) <= largest:
                raise refusal(_dotted(path), value, f"0 or a size from {MIN_SIZE:g} to {largest:g}")


Path = tuple[str | int, ...]  # keys of tables and indices of items, outermost first


def _parts(data: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield the path and value of ``data`` and of everything in its tables and lists."""
    yield path, data
    if isinstance(data, dict | list | tuple):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _parts(value, (*path, key))


def _dotted(path: Path) -> str:
    """Return the dotted key of a path of names and indices, such as ``attention.heads[0].query``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{show_key(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def translate(error: msgspec.ValidationError, data: Any, schema: type) -> CaseError:
    """Return the CaseError that states in terms of a case file why ``data`` cannot be converted to ``schema``.

    The message of msgspec contains a path (``$.initial.points[0]``) but not the value, and names Python types. The
    function follows the path through the data and the schema to find the value and the expected type.
    """
    message, _, path = str(error).partition(" - at `$")
    kind, key = types.type_info(schema), ""
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        kind = _choice(kind, name) or _child(kind, data, name)
        data = data[name] if name else data[int(index)]
        key += f"[{index}]" if index else f".{name}" if key else name
    prefix = f"{key}." if key else ""
    if missing := re.fullmatch("Object missing required field `(.*)`", message):
        text = _describe_missing(kind, data, missing[1])
        return CaseError(f"{prefix}{text}", f"{prefix}{text.partition(':')[0]}", is_missing=True)
    if unknown := re.fullmatch("Object contains unknown field `(.*)`", message, re.DOTALL):
        if tags := _tags_with(kind, unknown[1]):
            tag = _structs(kind)[0].tag_field
            name, value = f"{prefix}{unknown[1]}", show(data[unknown[1]])
            only = ", ".join(f'"{word}"' for word in tags)
            return CaseError(f'{name} = {value}: not valid for {tag} "{data.get(tag)}"; only for {only}', name)
        known = _keys(_struct(kind, data))
        if elsewhere := _sections_with(schema, unknown[1]):
            hint = f"; did you mean {' or '.join(elsewhere)}?"
        else:
            hint = did_you_mean(unknown[1], known) or f"; expected {_any_of(known, quote='')}"
        name = f"{prefix}{show_key(unknown[1])}"
        return CaseError(f"{name}: unknown key{hint}", name)
    choices = _type_words(kind) if isinstance(kind, types.LiteralType) else []
    return refusal(key, data, _describe_type(kind) + did_you_mean(data, choices))


def _members(kind: types.Type) -> tuple[types.Type, ...]:
    """Return the types of a union, or a single type as a tuple."""
    return kind.types if isinstance(kind, types.UnionType) else (kind,)


def _structs(kind: types.Type) -> list[types.StructType]:
    """Return the sections (structs) among the types of a union."""
    return [member for member in _members(kind) if isinstance(member, types.StructType)]


def _struct(kind: types.Type, data: Any) -> types.StructType:
    """Return the struct among the types of ``kind``; in a tagged union, the struct whose tag is in the data."""
    return next(one for one in _structs(kind) if one.tag_field is None or data.get(one.tag_field) == one.tag)


def _keys(struct: types.StructType) -> list[str]:
    """Return the keys of a section (struct), beginning with the key that selects its kind."""
    return [*([struct.tag_field] if struct.tag_field else []), *(field.encode_name for field in struct.fields)]


def _choice(kind: types.Type, name: str) -> types.LiteralType | None:
    """Return the possible tags if ``name`` is the tag field of a tagged union of types, else None."""
    tags = tuple(struct.tag for struct in _structs(kind) if struct.tag_field == name)
    return types.LiteralType(tags) if name and tags else None


def _tags_with(kind: types.Type, name: str) -> list[str]:
    """Return the tags of the members of a union that have a field ``name``."""
    return [str(struct.tag) for struct in _structs(kind) if struct.tag_field and name in _keys(struct)]


def _sections_with(schema: type, name: str) -> list[str]:
    """Return the dotted keys ``section.name`` of those sections of a case that have a key ``name``."""
    sections = [field for root in _structs(types.type_info(schema)) for field in root.fields]
    return [
        f"{section.encode_name}.{name}"
        for section in sections
        if any(name in _keys(struct) for struct in _structs(section.type))
    ]


def _child(kind: types.Type, data: Any, name: str) -> types.Type:
    """Return the type of the field ``name`` of a struct, or of the items of a list if ``name`` is empty."""
    if name:
        return next(field.type for field in _struct(kind, data).fields if field.encode_name == name)
    return next(member.item_type for member in _members(kind) if isinstance(member, types.VarTupleType))


def _describe_missing(kind: types.Type, data: Any, name: str) -> str:
    """Return ``name: missing; expected ...`` for a missing key; for a section, the text for its first required key."""
    field = _choice(kind, name) or _child(kind, data, name)
    key = next((struct.tag_field for struct in _structs(field)), None)
    if isinstance(field, types.StructType) and (required := [f.encode_name for f in field.fields if f.required]):
        key = required[0]
    if key is None:
        return f"{name}: missing; expected {_describe_type(field)}"
    inner = _describe_missing(field, {}, key)
    return f"{name}.{inner.replace('missing; expected', f'missing; expected a section [{name}] with it,', 1)}"


def _describe_type(kind: types.Type) -> str:
    """Return a description of a type, for example ``a number > 0 and <= 1``."""
    match kind:
        case types.FloatType() | types.IntType():
            signs = {">": kind.gt, ">=": kind.ge, "<": kind.lt, "<=": kind.le}
            bounds = " and ".join(f"{sign} {bound}" for sign, bound in signs.items() if bound is not None)
            return f"{'an integer' if isinstance(kind, types.IntType) else 'a number'} {bounds}".strip()
        case types.BoolType():
            return "true or false"
        case types.StrType():
            return "a string"
        case types.LiteralType():
            return _any_of(_type_words(kind))
        case types.VarTupleType(item_type, min_length):
            return f"a {'non-empty ' if min_length else ''}list, each item {_describe_type(item_type)}"
        case types.StructType():
            return "a table"
        case types.UnionType(members):
            present = [member for member in members if not isinstance(member, types.NoneType)]
            return " or ".join(dict.fromkeys(_describe_type(member) for member in present))
    raise AssertionError(f"a case has no values of type {kind}")


def _type_words(kind: types.LiteralType) -> list[str]:
    """Return the words of a literal type."""
    return [str(value) for value in kind.values]


def _any_of(words: list[str], quote: str = '"') -> str:
    """Return a list of words as text: ``one of "a", "b"``."""
    return ("one of " if len(words) > 1 else "") + ", ".join(f"{quote}{word}{quote}" for word in words)
