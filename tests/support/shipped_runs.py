"""Runs of the shipped cases, and measurements of the statements in their comments."""

import numpy as np
from support.pictures import PICTURES, draw_and_compare
from support.status import DONE, run

from meanfield.case.load import load
from meanfield.shipped import shipped_texts
from solvers.io.run_file import read


def finished(name, folder, *changes):
    """Run a shipped case, with ``changes`` like "attention.beta=4", to its end, and return (case, run file).

    Properties of all cases are asserted: the end is reached, no density is negative, and mass is kept to rounding. A
    picture of the run on a page is what is drawn now.
    """
    case = load(name, changes)
    path = folder / f"{name}.h5"
    assert run(case, path, overwrite=True, quiet=True) == DONE
    file = read(path)
    assert file.times[-1] == case.time.end
    assert file.manifold == "particles" or all(file.density(k).min() >= 0 for k in range(file.snapshots))
    assert np.abs(file.diagnostics["mass"] - 1).max() < 1e-12
    if name in PICTURES and not changes:
        draw_and_compare(name, folder)
    return case, file


def assert_stated(name, *phrases):
    """Assert that the comment of a shipped case has each phrase, built from computed numbers; line breaks do not
    count."""
    comment = shipped_texts("cases")[name].split("title =")[0]
    words = " ".join(comment.replace("\n#", "\n").split())
    for phrase in phrases:
        assert phrase in words, f"{name}: {phrase}"


def crossing(times, values, level):
    """Return the first time at which increasing values pass a level, by linear interpolation."""
    k = int(np.flatnonzero(values >= level)[0])
    return float(np.interp(level, values[k - 1 : k + 1], times[k - 1 : k + 1]))


def pair_angles(file):
    """Return the angles (snapshots,) of two equal atoms that are mirror images about the first axis of a circle.

    The angle is that of the mean direction of the upper half: an atom spread over some cells keeps its mean.
    """
    above = file.cell_centers[:, 1] > 0
    masses = np.array([file.density(k) for k in range(file.snapshots)]) * file.cell_areas * above
    x, y = (masses @ file.cell_centers).T
    return 2 * np.arctan2(y, x)
