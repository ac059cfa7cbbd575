"""
Convergence to separate atoms with a network
============================================

Unnormalized attention with a network W σ(Ux + b), W = Uᵀ diag(ω), ascends an energy. Its stable critical points on
the circle are atoms. For large β, several atoms on an arc of width 1/(2√β) have at most 0.5742 of the mass; here no
such arc has several atoms.
"""

import numpy as np

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.size import size
from meanfield.gallery.statement import Statement
from meanfield.gallery.tokens import continuous_angles, on_circle

BETA, N, BOUND, MERGED = 16.0, 60, 0.5742, 1e-3  # tokens closer than MERGED form an atom
arc, excess, curves = 1 / (2 * np.sqrt(BETA)), [], {}
inner = on_circle([0.0, 1.3, 2.9, 4.4])
network = [f"feed_forward.inner={inner.tolist()}", f"feed_forward.outer={inner.T.tolist()}"]
network += ["feed_forward.bias=[-0.5, -0.5, -0.5, -0.5]", "feed_forward.activation=relu"]


def arcs(angles):
    """Return the number of atoms, and for each atom the mass on the arc of length ``arc`` that begins there.

    Atoms are groups of tokens closer than MERGED. The mass is counted as 0 for an arc with a single atom.
    """
    angles = np.sort(angles % (2 * np.pi))
    atoms = angles[np.append(True, np.diff(angles) > MERGED)]
    after = (angles - atoms[:, None] + MERGED / 2) % (2 * np.pi) < arc
    several = [(np.diff(angles[on]) > MERGED).any() for on in after]
    return len(atoms), after.mean(axis=1) * several


for seed in range(size(2, 20)):
    changes = [f"attention.beta={BETA}", "attention.normalization=unnormalized", "attention.rescaled=true", *network]
    changes += ["initial.kind=uniform", f"domain.count={N}", "domain.dimension=2", f"domain.seed={seed}"]
    changes += ["time.end=300", "output.spacing=log", "output.first=0.1", "output.snapshots=60"]
    result = mf.simulate(mf.load_case("tokens_pair", [*changes, "output.samples=1", 'output.diagnostics=["mass"]']))
    path = continuous_angles(np.asarray(result.position))
    assert np.abs(path[-1] - path[-2]).max() < 1e-6  # the tokens are in equilibrium
    count, masses = zip(*map(arcs, path), strict=True)
    assert 1 < count[-1] <= len(inner)
    excess.append(max(masses[-1].max() - BOUND, 0.0))
    curves[f"start_{seed}"] = (np.asarray(result.time)[1:], count[1:])

STATEMENT = Statement(
    text="excess over 0.5742 of the mass of several atoms on an arc of width 1/(2√β), in equilibrium, β = 16",
    source="Álvarez-López, Geshkovski, Ruiz-Balet 2601.21366v2, section 3.2 (mass of clusters of critical points)",
    read="abstract; statements transcribed by a third party",
    expected=0.0,
    found=max(excess),
    tolerance=0.0,
    reason="no arc has several atoms",
)

# %%
draw("time", "atoms", logx=True, logy=True, **dict(list(curves.items())[:5]))
print(STATEMENT)
