"""Cluster tracks of a run with a handover: linked clusters before it, the recorded atoms after it.

An atom keeps its track until it merges with a heavier atom. A sample holds the heaviest atoms in the order of their
masses. An atom that a sample lacks keeps its last known position, or the position at which it appeared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.tracks import Merger, OpenTrack, Tracks, link_clusters
from meanfield.domains.atoms.events import present_clusters
from solvers.io.repair import FileError
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from solvers.io.run_file import Run

Events = Mapping[str, Floats]
Numbers = list[list[int]]  # numbers of the atoms that are present after each event


def tracks_of_atoms(run: Run, times: Floats, masses: Floats, centers: Floats) -> Tracks | None:
    """Return the clusters of a run followed through time across its handover, or None if no sample has atoms.

    Before the handover the clusters of successive samples are linked. At the handover they become atoms, point masses
    whose mergers the file records as events. ``masses`` (samples, K) and ``centers`` (samples, K, d) are the clusters
    of the samples at ``times`` (samples,). Raises FileError for events that no set of atoms can have.
    """
    until = times[-1] if len(times) else -np.inf
    events = {name: values[run.events["time"] <= until] for name, values in run.events.items()}
    if not events or not len(events["time"]):
        return None
    try:
        numbers, columns = _genealogy(events)
    except (ValueError, OverflowError):
        raise FileError(f"{run.path}: damaged: its events do not describe atoms") from None
    moment, first = events["time"][0], max(columns) + 1
    before, after = times < moment, times > moment
    of_atoms = _atoms_at_samples(events, numbers, columns, times[after], masses[after], centers[after])
    at_first = events["mass"][None, :first], events["center"][None, :first]
    parts, width = [(masses[before], centers[before]), at_first, of_atoms], max(masses.shape[1], first)
    masses, centers = (np.concatenate([_pad_columns(part[k], width) for part in parts]) for k in (0, 1))
    handover = int(before.sum()) + 1
    tracks = link_clusters(masses[:handover], centers[:handover])
    atoms = {one.columns[-1]: one for one in tracks if one.stop == handover}
    for column, one in atoms.items():
        one.columns += [column] * int(np.isfinite(masses[handover:, column]).sum())
    mergers = _mergers(events, columns, atoms)
    times = np.concatenate([times[before], [moment], times[after]])
    return Tracks(times, tuple(one.as_track(masses, centers) for one in tracks), mergers, float(moment))


def _genealogy(events: Events) -> tuple[Numbers, list[int]]:
    """Return the numbers of the atoms present after each event, and for each atom the first atom of its track.

    Each event creates an atom: at the handover from a cluster, later from two atoms that merge. A track continues with
    the heavier of the two. Raises ValueError for events that no set of atoms can have.
    """
    numbers, columns, mass = present_clusters(events["parents"]), list[int](), events["mass"]
    if not (mass > 0).all() or not np.isfinite(events["center"]).all():
        raise ValueError("atoms without mass or position")
    for number, (one, other) in enumerate(events["parents"].astype(int)):
        columns.append(number if one < 0 else columns[one if mass[one] >= mass[other] else other])
    return numbers, columns


def _atoms_at_samples(
    events: Events, numbers: Numbers, columns: list[int], times: Floats, masses: Floats, centers: Floats
) -> tuple[Floats, Floats]:
    """Return the masses (samples, atoms) and centers (samples, atoms, d) of the atoms at ``times`` after the handover.

    Each atom of the handover has a column, with NaN after the atom has merged into a heavier one. ``masses`` and
    ``centers`` are the clusters in the samples of the file, ``numbers`` and ``columns`` the results of `_genealogy`.
    """
    first = max(columns) + 1
    found = np.full((len(times), first), np.nan), np.full((len(times), first, centers.shape[2]), np.nan)
    places = dict(enumerate(events["center"]))
    for sample, time in enumerate(times):
        held, now = np.isfinite(masses[sample]), numbers[int((events["time"] <= time).sum()) - 1]
        event = 2 * first - 1 - int(held.sum())  # the last event before the sample, if the sample holds all atoms
        of_sample = numbers[event] if event < len(numbers) and not held.all() else now
        heaviest_first = sorted(of_sample, key=lambda number: -events["mass"][number])
        places.update(zip(heaviest_first, centers[sample, held], strict=False))
        for number in now:
            found[0][sample, columns[number]], found[1][sample, columns[number]] = (
                events["mass"][number],
                places[number],
            )
    return found


def _mergers(events: Events, columns: list[int], atoms: Mapping[int, OpenTrack]) -> tuple[Merger, ...]:
    """Return the recorded mergers of atoms, and set in ``atoms`` the track into which each merged track continues.

    ``atoms`` holds the track of each atom of the handover, by the number of the atom.
    """
    mergers, into, first = list[Merger](), dict[int, int](), max(columns) + 1
    for number in reversed(range(first, len(columns))):
        pair = sorted(events["parents"][number].astype(int), key=lambda parent: columns[parent] != columns[number])
        survivor, gone = (columns[parent] for parent in pair)
        while atoms[survivor].stop == atoms[gone].stop and survivor in into:  # merges before the next sample
            survivor = into[survivor]
        into[gone], atoms[gone].into = survivor, atoms[survivor].number
        time, count, masses = float(events["time"][number]), 2 * first - number, events["mass"][pair].tolist()
        tracks, step = (atoms[survivor].number, atoms[gone].number), 2 * masses[0] * masses[1]
        mergers.append(Merger(time, time, *tracks, (masses[0], masses[1]), count, count - 1, step))
    return tuple(reversed(mergers))


def _pad_columns(values: Floats, width: int) -> Floats:
    """Return ``values`` (samples, K, ...) with columns of NaN appended, so that there are ``width`` columns."""
    more = [(0, 0), (0, width - values.shape[1]), *[(0, 0)] * (values.ndim - 2)]
    return np.pad(values, more, constant_values=np.nan)
