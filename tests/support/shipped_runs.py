"""Runs of the shipped cases, and functions that measure what their comments promise."""

import numpy as np
from support.status import DONE, run

from meanfield.case.load import load
from meanfield.shipped import shipped_texts
from solvers.io.run_file import read


def finished(name, folder, *changes):
    """(case, run file) of a shipped case, with ``changes`` like "attention.beta=4", run to its end.

    What holds of all of them is asserted: it gets there, nothing is negative, and mass is kept to rounding.
    """
    case = load(name, changes)
    path = folder / f"{name}.h5"
    assert run(case, path, overwrite=True, quiet=True) == DONE
    file = read(path)
    assert file.times[-1] == case.time.end
    assert file.manifold == "particles" or all(file.density(k).min() >= 0 for k in range(file.snapshots))
    assert np.abs(file.diagnostics["mass"] - 1).max() < 1e-12
    return case, file


def assert_stated(name, *phrases):
    """The comment of a shipped case has each phrase, made by a test from computed numbers; line breaks do not count."""
    comment = shipped_texts("cases")[name].split("title =")[0]
    words = " ".join(comment.replace("\n#", "\n").split())
    for phrase in phrases:
        assert phrase in words, f"{name}: {phrase}"


def crossing(times, values, level):
    """First time at which increasing values pass a level, by linear interpolation."""
    k = int(np.flatnonzero(values >= level)[0])
    return float(np.interp(level, values[k - 1 : k + 1], times[k - 1 : k + 1]))


def pair_angles(file):
    """(snapshots,) angle of two equal atoms that lie as mirror images above and below the first axis of a circle.

    From the mean direction of what is above: a lump some cells wide has its atom's place, not its shape.
    """
    above = file.cell_centers[:, 1] > 0
    masses = np.array([file.density(k) for k in range(file.snapshots)]) * file.cell_areas * above
    x, y = (masses @ file.cell_centers).T
    return 2 * np.arctan2(y, x)
