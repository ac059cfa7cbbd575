"""Diagnostics of atoms at cell centers equal those of the density with all of its mass in those cells."""

import numpy as np
import pytest

from meanfield.domains.atoms.diagnostics import DIAGNOSTICS, AtomSample
from meanfield.domains.atoms.velocity import Atoms, AtomVelocity
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.domains.sphere.diagnostics import diagnostics_round
from meanfield.equation import Velocity
from meanfield.model.attention import Attention
from solvers.mesh.mesh import circle, sphere

MASSES = np.array([0.2, 0.5, 0.3])


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize(("mesh", "cells"), [(circle(64), [0, 11, 40]), (sphere(48), [2, 1000, 2600])])
def test_atoms_against_cells(mesh, cells, normalization):
    density = np.zeros(mesh.cells)
    density[cells] = MASSES / mesh.volumes[cells]
    names = ["mass", "energy", "speed", "centroid", "power", "pairs"]
    of_density = diagnostics_round(names, mesh, Velocity(Attention(mesh, 4.0, normalization)))
    expected = of_density(0.0, density)
    atoms = Atoms(mesh.centers[cells], MASSES)
    sample = AtomSample(AtomVelocity(ParticleVelocity(4.0, normalization)), 0.0, atoms, len(expected["power"]))
    for name in names:
        # exact sums on both sides, except the uniform part on the sphere, in closed form for the density: a
        # quadrature's error. On the circle pairs are of cells with a width, so that a pair may be in two bins.
        tolerance = 1e-3 if mesh.dimension == 2 and name in ("energy", "speed", "power") else 1e-10
        if not (name == "pairs" and mesh.dimension == 1):
            found = DIAGNOSTICS[name](sample)
            np.testing.assert_allclose(found, expected[name], rtol=tolerance, atol=1e-12, err_msg=name)
    assert DIAGNOSTICS["pairs"](sample).sum() == pytest.approx(1.0)
    assert DIAGNOSTICS["pairs_close"](sample) == pytest.approx((MASSES**2).sum())
    assert np.isnan(DIAGNOSTICS["entropy"](sample))


def test_clusters_are_the_atoms_heaviest_first():
    atoms = Atoms(np.eye(3), MASSES)
    sample = AtomSample(AtomVelocity(ParticleVelocity(4.0)), 0.0, atoms, 4)
    assert DIAGNOSTICS["clusters"](sample) == 3
    assert list(DIAGNOSTICS["cluster_mass"](sample)[:3]) == [0.5, 0.3, 0.2]
    np.testing.assert_array_equal(DIAGNOSTICS["cluster_center"](sample)[:3], np.eye(3)[[1, 2, 0]])
    assert np.isnan(DIAGNOSTICS["cluster_mass"](sample)[3:]).all()
