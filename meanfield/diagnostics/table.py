"""Diagnostics of a run, whatever the manifold: a table of small functions of what a state is looked at as."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from meanfield.clusters.pairs import BINS
from solvers.io.run_file import Column, Run
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from meanfield.case.case import Case


class Diagnostic(NamedTuple):
    """An entry of a domain's table of diagnostics.

    function    sample → value, what the domain's set-up lets a sample be
    dimensions  their names, blank between; lengths are of the domain or in LENGTHS
    long_name   in words, for the file
    possible    case → whether it can be recorded
    default     whether it is recorded unless others are named
    sums_pairs  whether it costs all pairs of tokens
    """

    function: Callable[[Any], float | Floats]
    dimensions: str
    long_name: str
    possible: Callable[[Case], bool] = lambda case: True
    default: bool = True
    sums_pairs: bool = False


Table = dict[str, Diagnostic]
LARGEST_EXPONENT = 700.0  # of the largest kernel: beyond it e^β is out of range, and energies are kept in units of it
SCALED_ENERGY = "interaction energy, in units of e^beta"
MOST_CLUSTERS = 32  # whose masses and centers are kept
LENGTHS = {"cluster": MOST_CLUSTERS, "pair_bin": BINS}  # of dimensions that are the same for every run


class Diagnostics:
    """The chosen diagnostics of a run: their columns in its file, and their values of a state.

    names     from the table
    table     of each name its entry
    lengths   of each dimension
    look      (time, values of the state) → what the functions take
    """

    def __init__(
        self,
        names: Sequence[str],
        table: Table,
        lengths: Mapping[str, int],
        look: Callable[[float, Floats], Any],
    ) -> None:
        self.names, self.table, self.lengths, self.look = tuple(names), table, lengths, look

    @property
    def columns(self) -> list[Column]:
        result = []
        for name in self.names:
            entry = self.table[name]
            dims = tuple((dimension, self.lengths[dimension]) for dimension in entry.dimensions.split())
            result.append(Column(name, dims, "1", entry.long_name))
        return result

    def __call__(self, time: float, values: Floats) -> dict[str, float | Floats]:
        sample = self.look(time, values)
        with np.errstate(over="ignore", invalid="ignore"):  # of what is about to blow up
            return {name: self.table[name].function(sample) for name in self.names}


def heaviest(values: Floats) -> Floats:
    """Values of clusters (k, ...), heaviest first, as (MOST_CLUSTERS, ...): the last ones left out, or NaN for none."""
    kept = np.full((MOST_CLUSTERS, *values.shape[1:]), np.nan)
    kept[: len(values)] = values[:MOST_CLUSTERS]
    return kept


def energy_is_scaled(run: Run) -> bool:
    """Whether the energies of a run are in units of e^|β|, as its file says."""
    return "energy" in run.diagnostics and "in units of" in run.long_name("energy")
