"""Sweep files: TOML in, a frozen ``Sweep`` of validated points out, before any point is run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from meanfield.case.case import Case
from meanfield.case.errors import CaseError, did_you_mean, refusal, refuse_unrepresentable, translate
from meanfield.case.load import parse, read_text, read_toml, text_of_file, to_toml
from meanfield.case.overrides import inline
from meanfield.sections.section import Count, Positive, Section, Seed
from meanfield.shipped import shipped_texts
from meanfield.sweeping.grid import MAX_POINTS, RANDOM_DESIGNS, Value, flatten_table, plan


class Keep(Section, frozen=True):
    """Section [keep] of a sweep file: with ``files``, the run file of each point is kept.

    The run files are in the folder NAME.runs beside the index.
    """

    files: bool = False


class FigureChoice(Section, frozen=True):
    """Section [figure] of a sweep file: ``value`` over ``x``, as a line for each of ``lines``, or over ``x`` and ``y``.

    ``x`` is a key, or "time" with a key as ``y``. ``value`` is a scalar of the index, such as "most_clusters", or for
    maps over time a column of the diagnostics. Missing choices are made from the available keys and scalars.
    """

    x: str | None = None
    y: str | None = None
    lines: str | None = None
    value: str | None = None


class _File(Section, frozen=True, kw_only=True):
    """Content of a sweep file; ``case``, ``keys`` and ``set`` are validated later.

    ``limit``: seconds of wall time after which a point is stopped.
    """

    title: str = ""
    case: Any = None
    design: Literal["grid", "zip", "random", "sobol", "latin hypercube"] = "grid"
    points: Count | None = None
    seed: Seed | None = None
    keys: Any = None
    limit: Positive | None = None
    fixed: Any = msgspec.field(name="set", default_factory=dict)
    keep: Keep = Keep()
    figure: FigureChoice = FigureChoice()


@dataclass(frozen=True)
class Point:
    """Point of a sweep, one run: the values of its varied keys, the same values as overrides, and its case."""

    values: dict[str, Value]
    overrides: tuple[str, ...]
    case: Case


class SweepPoints:
    """Points of a sweep, whose cases are created on access, because the cases of many points take much memory.

    rows   the values of the keys at each point
    """

    def __init__(self, base: str, fixed: tuple[str, ...], rows: Sequence[dict[str, Value]]) -> None:
        self.rows, self._fixed, self._base = rows, fixed, base

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Point]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> Point:
        """Return a point (run). Raises CaseError for an invalid case."""
        values = self.rows[number]
        ordered = sorted(values, key=lambda key: key.count("."))  # sections first: keys within them prevail
        overrides = tuple(f"{key}={inline(values[key])}" for key in ordered)
        try:
            return Point(values, overrides, parse(self._base, (*self._fixed, *overrides)))
        except CaseError as error:
            raise CaseError(f"point {number} ({' '.join(overrides)}): {error}") from None

    def identity(self, keep: Keep) -> str:
        """Return a hash that identifies a sweep, of the cases of all points (runs) in order, and of ``keep``.

        Raises CaseError for the first invalid case.
        """
        found = hashlib.sha256(f"{keep.files}".encode())
        for point in self:
            found.update(b"\0" + to_toml(point.case).encode())
        return found.hexdigest()


@dataclass(frozen=True)
class Sweep:
    """Sweep with validated points.

    base      the TOML of the case that is varied
    spacings  of each varied key: "log", "linear", "seeds" or "list"
    text      the sweep file as it was read
    identity  of the sweep in its index: a hash of the cases of all points, in order
    limit     seconds of wall time after which a point is stopped, or None
    """

    title: str
    base: str
    keys: tuple[str, ...]
    spacings: dict[str, str]
    points: SweepPoints
    keep: Keep
    figure: FigureChoice
    text: str
    identity: str
    limit: float | None = None

    @property
    def rows(self) -> Sequence[dict[str, Value]]:
        """Return the values of the varied keys at each point (run) of the sweep."""
        return self.points.rows


def load_sweep(name_or_path: str | Path) -> Sweep:
    """Return the sweep that a sweep file describes, or the sweep of that name that is shipped with the package.

    The case may be in a file beside the sweep file. Raises CaseError.
    """
    path, source = Path(name_or_path), str(name_or_path)
    if (text := text_of_file(source, "sweep")) is not None:
        return parse_sweep(text, path.parent, source)
    if source not in (texts := shipped_texts("sweeps")):
        hint = did_you_mean(path.name.removesuffix(".toml"), texts) or f"; shipped are {', '.join(texts)}"
        raise CaseError(f"{source}: no such file, nor a shipped sweep{hint}")
    return parse_sweep(texts[source], source=source)


def parse_sweep(text: str, folder: Path = Path(), source: str = "sweep", base: str | None = None) -> Sweep:
    """Return the sweep that a TOML text describes; paths of cases are relative to ``folder``. Raises CaseError.

    base   the TOML of the case, where the text names none
    """
    data = read_toml(text, source)
    refuse_unrepresentable(data)
    try:
        file = msgspec.convert(data, _File)
    except msgspec.ValidationError as error:
        raise translate(error, data, _File) from None
    base = _base(file.case, folder) if base is None else base
    _check_design(file)
    spacings, rows = plan(file.keys, file.design, file.points, file.seed or 0, MAX_POINTS)
    fixed = _fixed_overrides(file.fixed, spacings)
    points = SweepPoints(base, fixed, rows)
    identity = points.identity(file.keep)
    _check_figure(file.figure, spacings)
    return Sweep(
        file.title, base, tuple(spacings), spacings, points, file.keep, file.figure, text, identity, file.limit
    )


def _base(case: object, folder: Path) -> str:
    """Return the TOML of the case that a sweep varies; ``case`` is a shipped name, a path in ``folder``, or a table."""
    if isinstance(case, dict):
        import tomli_w

        return tomli_w.dumps(case)
    if not isinstance(case, str):
        expected = "the name of a shipped case, the path of a case file, or a table"
        raise CaseError(f"case: missing; expected {expected}") if case is None else refusal("case", case, expected)
    beside = folder / case
    return read_text(str(beside) if beside.is_file() else case)


def _check_design(file: _File) -> None:
    """Raise CaseError if ``points`` or ``seed`` of a sweep file are missing, or not allowed with its design.

    The design, such as "grid" or "zip", is the way in which values of the varied keys are combined to runs.
    """
    if file.design in RANDOM_DESIGNS and file.points is None:
        raise CaseError(f'points: missing; expected an integer >= 1 with design = "{file.design}"')
    for key, value in (("points", file.points), ("seed", file.seed)):
        if file.design not in RANDOM_DESIGNS and value is not None:
            raise refusal(key, value, f'not allowed with design = "{file.design}"')


def _fixed_overrides(table: object, spacings: dict[str, str]) -> tuple[str, ...]:
    """Return the table [set] of a sweep file, settings of all points (runs), as overrides "key=value".

    Raises CaseError for a key that also varies: one of those in ``spacings``.
    """
    if not isinstance(table, dict):
        raise refusal("set", table, "a table of keys and values")
    values = flatten_table(table)
    for key in values:
        if key in spacings:
            raise refusal(f"set.{key}", values[key], "not allowed here: it is among the keys that vary")
    return tuple(f"{key}={inline(value)}" for key, value in values.items())


def _check_figure(figure: FigureChoice, spacings: dict[str, str]) -> None:
    """Raise CaseError if the figure of a sweep file names a key that does not vary."""
    for name, more in (("x", ["time"]), ("y", []), ("lines", [])):
        key, known = getattr(figure, name), [*spacings, *more]
        if key is not None and key not in known:
            raise refusal(f"figure.{name}", key, f"one of {', '.join(known)}{did_you_mean(key, known)}")
