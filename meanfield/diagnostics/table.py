"""Diagnostics of a run on any manifold: a table of small functions of the samples of a domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from meanfield.clusters.pairs import BINS
from meanfield.clusters.parts import cancellable
from meanfield.model.functionals import energy_log_unit
from meanfield.model.kernel import KERNELS
from solvers.io.run_file import Column, FileError, Run
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from meanfield.case.case import Case


Attributes = tuple[tuple[str, str | float], ...]


class Diagnostic(NamedTuple):
    """Entry of the table of diagnostics of a domain: a quantity that is recorded during a run.

    function     sample → value, with a sample as the domain defines it; or samples → (samples, ...) values, in the
                 tables of :class:`DiagnosticsTogether`
    dimensions   names of the axes of the value, separated by blanks; lengths are given by the domain or by LENGTHS
    long_name    description of the quantity in the file, for people
    possible     case → whether the quantity can be recorded
    default      case → whether the quantity is recorded if the case names no diagnostics
    sums_pairs   whether the cost is proportional to the number of pairs of tokens
    attributes   attributes of the dataset in the file, for programs
    """

    function: Callable[[Any], float | Floats]
    dimensions: str
    long_name: str
    possible: Callable[[Case], bool] = lambda case: True
    default: Callable[[Case], bool] = lambda case: True
    sums_pairs: bool = False
    attributes: Attributes = ()


def only_if_named(case: Case) -> bool:
    """Return False: the default of a quantity that is recorded only if the case names it."""
    return False


Table = dict[str, Diagnostic]
GoingOn = Callable[[], None]
REFERENCE, LOG_UNIT, FACTOR = "reference", "log_unit", "factor"  # attributes of the entropy and of the energy
ENTROPY = ((REFERENCE, "area"),)  # older axisymmetric files lack this attribute: relative to the uniform density
MAX_CLUSTERS = 32  # maximum number of clusters whose masses and centers are stored
LENGTHS = {"cluster": MAX_CLUSTERS, "pair_bin": BINS}  # of dimensions that are equal for every run


class Diagnostics:
    """Selected diagnostics of a run: columns in its file, and values of a state.

    names       names of the selected diagnostics
    table       entry of each diagnostic, by name
    lengths     length of each dimension, by name
    sample_of   (time, values of the state) → the argument of the functions in the table

    ``may_wait``: whether values depend on the state alone, not on the time of their computation.
    """

    may_wait = True

    def __init__(
        self,
        names: Sequence[str],
        table: Table,
        lengths: Mapping[str, int],
        sample_of: Callable[..., Any],
    ) -> None:
        self.names, self.table, self.lengths, self.sample_of = tuple(names), table, lengths, sample_of

    @property
    def columns(self) -> list[Column]:
        """Return the description of the dataset of each diagnostic in a run file."""
        result = []
        for name in self.names:
            entry = self.table[name]
            dims = tuple((dimension, self.lengths[dimension]) for dimension in entry.dimensions.split())
            result.append(Column(name, dims, "1", entry.long_name, entry.attributes))
        return result

    def __call__(self, time: float, values: Floats, going_on: GoingOn = lambda: None) -> dict[str, float | Floats]:
        """Return the values of the diagnostics of a state at a time, by name.

        ``going_on`` is called before each diagnostic and within long ones; an exception of ``going_on`` cancels the
        rest.
        """
        return self.values(self.sample_of(time, values), going_on)

    def values(self, sample: Any, going_on: GoingOn = lambda: None) -> dict[str, float | Floats]:
        """Return the values of the diagnostics, by name, of a sample that ``sample_of`` has returned.

        ``going_on`` is called before each diagnostic and within long ones; its exceptions cancel the computation.
        """
        found: dict[str, float | Floats] = {}
        with np.errstate(over="ignore", invalid="ignore"), cancellable(going_on):  # of a state that is about to blow up
            for name in self.names:
                going_on()
                found[name] = self.table[name].function(sample)
        return found

    def of_states(self, times: Sequence[float], states: Sequence[Floats]) -> dict[str, Floats]:
        """Return the values (states, ...) of the diagnostics of several states, by name, at less cost than one by one.

        The code of each diagnostic stays in the processor cache.
        """
        samples = [self.sample_of(*each) for each in zip(times, states, strict=True)]
        with np.errstate(over="ignore", invalid="ignore"):
            columns = {name: [self.table[name].function(sample) for sample in samples] for name in self.names}
        return {name: np.array(column, dtype=np.float64) for name, column in columns.items()}

    def only(self, names: Sequence[str]) -> Self:
        """Return the same selection of diagnostics restricted to the given names."""
        return type(self)(names, self.table, self.lengths, self.sample_of)


class DiagnosticsTogether(Diagnostics):
    """Diagnostics whose functions take the samples of many states at once; a value depends on its own state alone.

    sample_of   (times (samples,), states (samples, ...)) → the samples that the functions take
    """

    def __call__(self, time: float, values: Floats, going_on: GoingOn = lambda: None) -> dict[str, float | Floats]:
        """Return the values of the diagnostics of a state at a time, by name.

        ``going_on`` is called between diagnostics; an exception of ``going_on`` cancels the rest.
        """
        found = self.values(self.sample_of([time], values[None]), going_on)
        rows = {name: np.asarray(value)[0] for name, value in found.items()}
        return {name: row if np.ndim(row) else float(row) for name, row in rows.items()}

    def of_states(self, times: Sequence[float], states: Sequence[Floats]) -> dict[str, Floats]:
        """Return the values (states, ...) of the diagnostics of several states, by name, computed together."""
        return {name: np.asarray(rows) for name, rows in self.values(self.sample_of(times, np.stack(states))).items()}


def heaviest(values: Floats) -> Floats:
    """Return the first MAX_CLUSTERS rows of values of clusters (k, ...), padded with NaN, as (MAX_CLUSTERS, ...).

    The clusters are in order of their masses, heaviest first.
    """
    return np.asarray(heaviest_of_rows(np.array([len(values)]), values[None])[0])


def heaviest_of_rows(counts: NDArray[np.intp], values: Floats) -> Floats:
    """Return values (rows, k, ...) of clusters as (rows, MAX_CLUSTERS, ...), truncated or padded with NaN.

    In each row the first ``counts`` (rows,) values are those of clusters, heaviest first.
    """
    padded, k = np.full((len(values), MAX_CLUSTERS, *values.shape[2:]), np.nan), values.shape[1]
    np.copyto(padded[:, :k].T, values[:, :MAX_CLUSTERS].T, where=(np.arange(padded.shape[1])[:k] < counts[:, None]).T)
    return padded


def energy_entry(
    function: Callable[[Any], float | Floats], log_bound: float, attributes: Attributes = ()
) -> Diagnostic:
    """Return the entry of the interaction energy in a table of diagnostics, with further ``attributes``.

    The unit of the energy depends on the largest kernel, e^{log_bound}.
    """
    log_unit = float(energy_log_unit(log_bound))
    unit = f", in units of e^{log_unit:.6g}" if log_unit else ""
    own: Attributes = ((LOG_UNIT, log_unit), (FACTOR, "1/(2 beta)"))
    return Diagnostic(function, "", f"interaction energy{unit}", attributes=(*own, *attributes))


def has_energy(case: Case) -> bool:
    """Return whether the interaction energy E of a case is defined.

    At β = 0 it is not for a window or a pattern: the constant ∬kρρ/2β then depends on ρ.
    """
    attention = case.attention
    return attention.beta > 0 or (KERNELS[attention.kernel].zonal is None and attention.pattern is None)


def energy_beta(run: Run, case: Case) -> float:
    """Return the β of the factor 1/2β in the interaction energies of a run.

    In files whose energy has the attribute ``factor``, this β excludes the scales of Q and K, which are in the kernel.
    In older files this β includes them.
    """
    return case.beta_of_heads if FACTOR in run.attributes_of("energy") else case.beta_on_unit_sphere


def energy_unit(run: Run, beta: float) -> float:
    """Return the logarithm of the unit of the interaction energies in a run's file, 0 or about |β|.

    The logarithm is the attribute ``log_unit`` of the variable ``energy``. In older files, without this attribute, the
    unit is e^|β| if the ``long_name`` of the variable contains "in units of", else 1.
    """
    attributes = run.attributes_of("energy")
    if LOG_UNIT in attributes:
        return run.number(LOG_UNIT, np.nan, "energy")
    return abs(beta) if "in units of" in str(attributes.get("long_name", "")) else 0.0


def entropy_is_relative(run: Run, has_uniform: bool) -> bool:
    """Return whether the entropy in a run's file is relative to the uniform density.

    The entropy is relative in older files of domains whose files store the uniform density (``has_uniform``).
    """
    return has_uniform and REFERENCE not in run.attributes_of("entropy")


def require_same_units(run: Run, columns: Sequence[Column], case: Case) -> None:
    """Raise FileError where entropies or energies that a run would add to a file differ in meaning from those in it."""
    attributes = {column.name: dict(column.attributes) for column in columns}
    if "entropy" in attributes and entropy_is_relative(run, case.domain.uniform is not None):
        raise FileError(
            f"{run.path}: its entropy is relative to the uniform density, as in older versions; run the case again"
        )
    if "energy" not in attributes:
        return
    if energy_beta(run, case) != case.beta_of_heads:
        raise FileError(f"{run.path}: the factor of its energy has the scales of query and key; run the case again")
    before, now = energy_unit(run, case.attention.beta_effective), float(attributes["energy"].get(LOG_UNIT, 0.0))
    if before != now:
        raise FileError(f"{run.path}: its energy is in units of e^{before:g}, now e^{now:g}; run the case again")
