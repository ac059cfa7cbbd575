"""Loading and validation of case files: TOML to a frozen ``Case``. Each invalid case raises a one-line error."""

from __future__ import annotations

import copy
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from meanfield.case.case import Case
from meanfield.case.errors import (
    CaseError,
    all_of,
    did_you_mean,
    refuse_extremes,
    refuse_unrepresentable,
    translate,
)
from meanfield.case.lines import lines_of_keys, remove, with_lines
from meanfield.case.overrides import (
    Toml,
    apply,
    canonicalize_section,
    canonicalize_sections,
    overrides_of,
    remove_initial,
    without_none,
)
from meanfield.case.types import convert, type_of_case
from meanfield.case.validate import check
from meanfield.domains.table import canonicalize_manifold
from meanfield.shipped import shipped_texts

if TYPE_CHECKING:
    from meanfield.case.given import GivenInitial

_SNAPSHOTS = 100
_MAX_ERRORS = 20  # errors reported at once
MAX_BYTES = 16 * 2**20  # largest size of a case file
_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
_TOLERANCE = 1e-10  # error of a step; the time of a merger after a metastable state then has an error of about 1e-7
_CFL = 0.9  # of a density without noise: measured errors of time are then far below those of the mesh
_SPLIT_CFL = 0.5  # with noise, and for particles: the error of time is of second order, by splitting
_STIFF = 300.0  # an explicit method of order 8 then takes several hundred steps in a unit of time
_FIRST = 1e-4  # fraction of the end: four decades show the linear growth, the collapse and the mergers
_FIRST_BEFORE_ATOMS = 0.1  # upper bound with a handover, where the end may be large: a token moves by at most 0.1 rad


def load(name_or_path: str, overrides: Sequence[str] = (), initial: GivenInitial | None = None) -> Case:
    """Return the case in a file, or the shipped case of that name, with ``overrides`` such as ``attention.beta=4``.

    ``initial`` is an array or a function that replaces the initial density, see meanfield.case.given. Raises CaseError,
    with line numbers for a file.
    """
    text = read_text(name_or_path)
    try:
        return _case_of(read_toml(text, name_or_path), overrides, initial)
    except CaseError as error:
        if not Path(name_or_path).exists():  # line numbers of a shipped case do not help the user
            raise
        lines: dict[str, int | None] = {canonicalize_section(key): line for key, line in lines_of_keys(text).items()}
        lines.update((override.partition("=")[0].strip(), None) for override in overrides)
        raise with_lines(error, name_or_path, lines) from None


def parse(text: str, overrides: Sequence[str] = (), initial: GivenInitial | None = None) -> Case:
    """Return the case of a TOML text, with ``overrides`` such as ``attention.beta=4``. Raises CaseError.

    ``initial`` is an array or a function that replaces the initial density, see meanfield.case.given.
    """
    return _case_of(read_toml(text, "case"), overrides, initial)


def parse_sections(
    sections: Mapping[str, Any], overrides: Sequence[str] = (), initial: GivenInitial | None = None
) -> Case:
    """Return the case of sections by name, which are tables or records, with overrides. Raises CaseError."""
    data: Toml = {}
    apply(data, overrides_of(sections))
    return _case_of(data, overrides, initial)


def to_toml(case: Case) -> str:
    """Return the resolved case as TOML with every default; ``parse(to_toml(case)) == case``."""
    import tomli_w

    return tomli_w.dumps(without_none(msgspec.to_builtins(case, enc_hook=_plain)))


def _plain(value: object) -> object:
    """Return a NumPy number or array of a case as Python numbers, for TOML. Raises CaseError for any other value."""
    if not hasattr(value, "tolist"):
        raise CaseError(f"case: {value!r}: expected numbers, texts, lists and sections")
    return value.tolist()


def shipped() -> dict[str, str]:
    """Return the titles of the shipped cases by name, in alphabetical order."""
    return {name: tomllib.loads(text).get("title", "") for name, text in sorted(shipped_texts("cases").items())}


def _case_of(data: Toml, overrides: Sequence[str], initial: GivenInitial | None = None) -> Case:
    """Return the validated case of parsed TOML with overrides, and with all defaults. Raises CaseError.

    An array or a function ``initial`` replaces the initial density, and the number of tokens.
    """
    if initial is not None:
        remove_initial(data)
    apply(data, overrides)
    canonicalize_manifold(data)
    if initial is not None:
        from meanfield.case.given import table_of

        data["initial"] = table_of(initial, data, lambda tables: _case_of(tables, ())) | data.get("initial", {})
    refuse_unrepresentable(data)
    case = _resolve(_convert_tables(data))
    check(case)
    refuse_extremes(msgspec.to_builtins(case))
    return case


def _convert_tables(data: Toml) -> Case:
    """Return parsed TOML as a case whose values are checked one by one.

    Raises CaseError for wrong types, values out of range, unknown or missing keys.
    """
    try:
        return convert(data)
    except msgspec.ValidationError:
        errors = _errors(data, schema := type_of_case(data))
    for field in msgspec.structs.fields(schema):  # an error in one section hides errors in the next ones
        if field.encode_name in data:
            alone = msgspec.defstruct("Alone", [(field.encode_name, field.type)])
            errors |= _errors({field.encode_name: data[field.encode_name]}, alone)
    raise all_of(list(errors.values())[:_MAX_ERRORS])


def _errors(data: Toml, schema: type) -> dict[str, CaseError]:
    """Return the errors of parsed TOML by key.

    Each error is found after removing the key of the last one, up to the first missing key.
    """
    found: dict[str, CaseError] = {}
    data = copy.deepcopy(data)
    while True:
        try:
            msgspec.convert(data, schema)
            return found
        except msgspec.ValidationError as cause:
            error = translate(cause, data, schema)
        if error.is_missing and any(_is_within(error.key, key) or _is_within(key, error.key) for key in found):
            return found  # missing because this function removed it
        found.setdefault(error.key, error)
        if error.is_missing or not remove(data, error.key):
            return found


def _is_within(key: str, table: str) -> bool:
    """Return whether a dotted key is ``table`` itself, one of its keys or one of its items."""
    return key == table or key.startswith((f"{table}.", f"{table}["))


def read_toml(text: str, source: str) -> Toml:
    """Return the content of a TOML text, sections by their current names; messages name ``source``.

    Raises CaseError.
    """
    try:
        return canonicalize_sections(tomllib.loads(text))
    except RecursionError:
        raise CaseError(f"{source}: not TOML: nested too deeply") from None
    except ValueError as error:  # Python also raises ValueError for a number of more than 4300 digits
        place = _PLACE.fullmatch(str(error))
        if place is None:
            raise CaseError(f"{source}: not TOML: {error}") from None
        last = text.splitlines() or [""]
        line, column = place[2] or len(last), place[3] or len(last[-1]) + 1
        raise CaseError(f"{source}, line {line}, column {column}: not TOML: {place[1]}") from None


def _resolve(case: Case) -> Case:
    """Return the case with those defaults filled in that depend on other keys."""
    case = msgspec.structs.replace(case, domain=case.domain.resolved(case))
    case = _with_times(case)  # stiffness depends on the number of tokens
    output, atoms = case.output, case.handover is not None
    is_given = any(value is not None for value in (output.snapshots, output.every, output.times))
    spacing = output.spacing or ("log" if atoms else "linear")
    first = min(_FIRST * case.time.end, _FIRST_BEFORE_ATOMS if atoms else math.inf) if spacing == "log" else None
    output = msgspec.structs.replace(
        output,
        snapshots=output.snapshots if is_given else _SNAPSHOTS,
        diagnostics=case.default_diagnostics if output.diagnostics is None else output.diagnostics,
        spacing=spacing,
        first=first if output.first is None else output.first,
    )
    return msgspec.structs.replace(case, output=output)


def _with_times(case: Case) -> Case:
    """Return the case with its time method and step filled in; the number of layers determines the end time."""
    time = case.time
    if time.method == "auto":
        adaptive = "adaptive" in case.domain.features and not case.stabilizers.noise and not _is_stiff(case)
        time = msgspec.structs.replace(time, method="adaptive" if adaptive else "ssprk3")
    if time.cfl is None:
        flows = not case.stabilizers.noise and "adaptive" not in case.domain.features
        time = msgspec.structs.replace(time, cfl=_CFL if flows else _SPLIT_CFL)
    if time.method == "adaptive" and time.tolerance is None:
        time = msgspec.structs.replace(time, tolerance=_TOLERANCE)
    if time.method == "layers":
        if time.layers is None:
            raise CaseError("time.layers: missing; expected an integer >= 1")
        step = time.step or (_layer_step(time.end, time.layers) if time.end and case.stabilizers.residual else 1.0)
        duration = step if case.stabilizers.residual else 1.0
        time = msgspec.structs.replace(time, step=step, end=time.layers * duration)
    elif time.step is None and case.attention.file is not None:
        time = msgspec.structs.replace(time, step=1.0)
    return msgspec.structs.replace(case, time=time)


def _layer_step(end: float, layers: int) -> float:
    """Return end/layers, rounded up if necessary, so that the last layer is not before the end.

    The list output.times may contain the end.
    """
    step = end / layers
    return step if layers * step >= end else math.nextafter(step, math.inf)


def _is_stiff(case: Case) -> bool:
    """Return whether diffusion along a sequence, of rate κn²/L², is stiff and no tolerance is given."""
    sequence = case.sequence
    if sequence is None or case.time.tolerance is not None:
        return False
    per_length = (case.domain.count or 0) / sequence.length
    return sequence.diffusion * per_length * per_length > _STIFF


def read_text(name_or_path: str) -> str:
    """Return the text of a case file, or of the shipped case of that name. Raises CaseError."""
    if (text := text_of_file(name_or_path, "case")) is not None:
        return text
    path, texts = Path(name_or_path), shipped_texts("cases")
    if name_or_path not in texts:
        if name_or_path and path.is_dir():
            raise CaseError(f"{name_or_path}: is a folder; expected a case file")
        hint = did_you_mean(path.name.removesuffix(".toml"), texts) or "; `meanfield cases` lists them"
        raise CaseError(f"{name_or_path}: no such file, nor a shipped case{hint}")
    return texts[name_or_path]


def text_of_file(path: str, kind: str) -> str | None:
    """Return the text of a file, which may be a pipe, or None if there is no such file.

    Raises CaseError for a file that cannot be read as a "case" or "sweep", and for a text longer than MAX_BYTES.
    """
    try:
        if not Path(path).exists() or Path(path).is_dir():
            return None
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise CaseError(f"{path}: not a {kind} file: longer than {MAX_BYTES} bytes")
        return data.decode("utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError:
        raise CaseError(f"{path}: not a {kind} file: not UTF-8 text") from None
    except OSError as error:
        raise CaseError(f"{path}: cannot be read: {error.strerror}") from None
