"""Tokens at quantiles and at Sobol points: distance from the density, and moments, beside those of random tokens."""

import msgspec
import numpy as np
import pytest

import meanfield as mf
from meanfield.analysis.measure import CELL_EXTENT, PointMeasure, atoms
from meanfield.analysis.wasserstein import wasserstein
from meanfield.domains.particles.field import Field
from meanfield.domains.particles.initial_tokens import draw_tokens
from meanfield.domains.sphere.fields import harmonic_coefficients
from meanfield.domains.sphere.initial_density import INITIAL
from meanfield.sections import initial as sections
from solvers.mesh.mesh import circle, sphere

SEEDS = range(20)


def mixture(*centers):
    return sections.VonMisesFisher(
        components=tuple(
            sections.Component(center=center, concentration=8.0 * k, mass=1 / k)
            for k, center in enumerate(centers, start=1)
        )
    )


ON_CIRCLE = [
    sections.Uniform(),
    sections.Perturbed(amplitude=0.8, degrees=6, seed=1),
    sections.Harmonic(degree=3, amplitude=0.6),
    mixture((1.0, 0.0), (-0.5, 1.0)),
    sections.Moebius(axis=(0.0, 1.0), parameter=1.0),
]
ON_SPHERE = [
    sections.Uniform(),
    sections.Perturbed(amplitude=0.8, degrees=6, seed=1),
    sections.Harmonic(degree=3, order=2, amplitude=0.3),
    mixture((1.0, 0.0, 0.2), (-0.5, 1.0, 0.3)),
    sections.Moebius(axis=(0.0, 1.0, 2.0), parameter=1.0),
]


def name_of(kind):
    return type(kind).__name__


def draw(kind, sampling, count, dimension, seed=0):
    tokens, masses = draw_tokens(msgspec.structs.replace(kind, sampling=sampling), count, dimension, seed)
    assert tokens.shape == (count, dimension)
    assert np.array_equal(masses, np.full(count, 1 / count))
    return tokens


def density_of(kind, mesh):
    masses = INITIAL[type(kind)](mesh, kind) * mesh.volumes
    if mesh.dimension == 1:
        return PointMeasure("S1", mesh.centers, masses, mesh.volumes)
    return PointMeasure("S2", mesh.centers, masses, CELL_EXTENT * np.sqrt(mesh.volumes), mesh.ring_cells)


def distance(density, tokens):
    return wasserstein(density, atoms(density.space, tokens)).value


@pytest.mark.parametrize("kind", ON_CIRCLE, ids=name_of)
def test_quantiles_on_the_circle_are_the_nearest_tokens(kind):
    """W₁ is 2π/4n for every density that is smooth between successive quantiles: no n equal masses come closer.

    A gap of the density between two tokens adds up to 1/2n of its length. W₁ of random tokens falls like n^{−1/2}."""
    density, counts = density_of(kind, circle(1 << 14)), np.array([125, 250, 500, 1000, 2000])
    found = np.array([distance(density, draw(kind, "quantiles", count, 2)) for count in counts])
    assert (found * counts).max() <= np.pi
    if not isinstance(kind, sections.VonMisesFisher):  # has gaps
        assert found * counts == pytest.approx(np.full(len(counts), np.pi / 2), rel=1e-3)  # cells of the density
    order = -np.polyfit(np.log(counts), np.log(found), 1)[0]
    assert order > 0.95, f"W1 falls with the order {order}"
    random = np.mean([distance(density, draw(kind, "random", 1000, 2, seed)) for seed in SEEDS])
    # 20: random tokens of the uniform density are 29 times as far on average, of narrow ones less
    assert found[3] < random / 20, f"{random / found[3]} times nearer"


@pytest.mark.parametrize("kind", ON_CIRCLE, ids=name_of)
def test_sobol_points_on_the_circle(kind):
    """A power of two of Sobol points has one point in each of n intervals of equal mass: W₁ ≤ 2π/n."""
    density = density_of(kind, circle(1 << 14))
    found = [distance(density, draw(kind, "sobol", count, 2, seed)) * count for count in (256, 1024) for seed in (0, 1)]
    assert max(found) < 2 * np.pi


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ON_SPHERE, ids=name_of)
def test_distance_on_the_sphere(kind):
    """Any n equal masses are as far from the uniform density as caps of area 4π/n are from their centers, (2/3)√(4/n):
    0.46 of the mean distance of random tokens for n = 1000."""
    density = density_of(kind, sphere(64))
    random = np.mean([distance(density, draw(kind, "random", 1000, 3, seed)) for seed in SEEDS[:4]])
    sobol = np.mean([distance(density, draw(kind, "sobol", 1000, 3, seed)) for seed in SEEDS[:4]])
    assert sobol < 0.7 * random, f"{sobol / random}"
    assert distance(density, draw(kind, "quantiles", 1000, 3)) < sobol


def moment_error(kind, sampling, count, seeds):
    """Return the root mean square error of the means of all harmonics of degrees 1 to 4."""
    mesh = sphere(256)
    masses = density_of(kind, mesh).masses
    fields = [Field(harmonic_coefficients(3, degree, order)) for degree in range(1, 5) for order in range(degree + 1)]
    exact = np.array([field(mesh.centers) @ masses for field in fields])
    found = [[field(draw(kind, sampling, count, 3, seed)).mean() for field in fields] for seed in seeds]
    return np.sqrt(np.mean((found - exact) ** 2))


@pytest.mark.parametrize("kind", ON_SPHERE, ids=name_of)
def test_moments_on_the_sphere(kind):
    """Means of smooth functions, on which attention depends, are exact to the order 1/n instead of n^{−1/2}."""
    random, sobol = (moment_error(kind, sampling, 1000, SEEDS[:6]) for sampling in ("random", "sobol"))
    quantiles = moment_error(kind, "quantiles", 1000, [0])
    assert sobol < random / 5, f"{random / sobol} times more accurate"
    assert quantiles < random / 15, f"{random / quantiles} times more accurate"
    counts = [256, 1024, 4096]
    errors = [moment_error(kind, "sobol", count, SEEDS[:6]) for count in counts]
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert order > 0.85, f"errors fall with the order {order}"


@pytest.mark.parametrize("concentration", [0.0, 2.0, 60.0, 1e6, 1e14])
@pytest.mark.parametrize("dimension", [2, 3, 4, 5, 64])
def test_von_mises_fisher_in_any_dimension(dimension, concentration):
    """The mean of |x − μ|²/2 is 1 − I_{d/2}(c)/I_{d/2−1}(c), here by Gauss's continued fraction."""
    center = np.random.default_rng(1).standard_normal(dimension)
    center /= np.linalg.norm(center)
    part = sections.Component(center=tuple(center), concentration=concentration)
    tokens = draw(sections.VonMisesFisher(components=(part,)), "sobol", 4096, dimension)
    assert np.abs(np.linalg.norm(tokens, axis=1) - 1).max() < 1e-14
    ratio = 0.0
    for k in reversed(range(1000)):
        ratio = concentration / (dimension + 2 * k + concentration * ratio)
    exact = 1 - ratio if concentration < 1e5 else (dimension - 1) / (2 * concentration)
    found = ((tokens - center) ** 2).sum(axis=1) / 2
    # 3e-3: a tenth of the standard error of 4096 random tokens, and rounding of |x − μ| = 1e-7 at the largest c
    assert found.mean() == pytest.approx(exact, rel=3e-3)
    across = tokens - np.outer(tokens @ center, center)
    assert np.linalg.norm(across.mean(axis=0)) < 3e-3 * np.sqrt(found.mean())


@pytest.mark.parametrize(("sampling", "dimension"), [("quantiles", 1), ("quantiles", 2), ("sobol", 2), ("sobol", 6)])
def test_gaussian(sampling, dimension):
    factor, mean = np.random.default_rng(2).standard_normal((dimension, dimension)), np.arange(1.0, dimension + 1)
    variance = factor @ factor.T + np.eye(dimension)
    kind = sections.Gaussian(mean=tuple(mean), variance=tuple(map(tuple, variance)))
    tokens = draw(kind, sampling, 4096, dimension)
    scale = variance.trace()  # errors of random tokens are about scale/√4096 = 1.6e-2 scale
    assert np.abs(tokens.mean(axis=0) - mean).max() < 2e-3 * scale
    assert np.abs(np.cov(tokens.T, bias=True) - variance).max() < 4e-3 * scale


@pytest.mark.parametrize("sampling", ["quantiles", "sobol"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_components_have_their_masses(sampling, dimension):
    """Masses are relative, and a component without mass has no tokens."""
    centers, masses = np.eye(dimension)[[0, 1, 0]] * [[1.0], [1.0], [-1.0]], (3.0, 0.0, 1.0)
    parts = (
        sections.Component(center=tuple(center), concentration=1e4, mass=mass)
        for center, mass in zip(centers, masses, strict=True)
    )
    tokens = draw(sections.VonMisesFisher(components=tuple(parts)), sampling, 1000, dimension)
    nearest = (tokens @ centers.T).argmax(axis=1)
    assert np.bincount(nearest, minlength=3) == pytest.approx([750, 0, 250], abs=8)  # 1000 of 1024 Sobol points
    assert (tokens * centers[nearest]).sum(axis=1).min() > 0.99


@pytest.mark.parametrize("kind", [*ON_SPHERE, sections.Gaussian()], ids=name_of)
def test_the_seed_determines_the_tokens(kind):
    """Seeds scramble Sobol points; those of quantiles change the order alone, which is independent of positions."""
    dimension = 2 if isinstance(kind, sections.Gaussian) else 3
    for sampling in ("quantiles", "sobol"):
        first, other = (draw(kind, sampling, 200, dimension, seed) for seed in (1, 2))
        assert np.array_equal(first, draw(kind, sampling, 200, dimension, 1))
        assert not np.array_equal(first, other)
        same = np.allclose(*(tokens[np.lexsort(tokens.round(9).T)] for tokens in (first, other)), rtol=0, atol=1e-12)
        assert same == (sampling == "quantiles")
    assert len(np.unique(first.round(9), axis=0)) == 200


CIRCLE = {"manifold": "circle", "resolution": 256}
TOKENS = {"manifold": "particles", "dimension": 2, "count": 100}
CASE = {"attention": {"beta": 5.0}, "time": {"end": 10.0}, "output": {"snapshots": 2, "diagnostics": ["energy"]}}


def test_quantiles_follow_the_density():
    """Symmetry is broken by the density and not by the noise of n tokens: both end in the same clusters."""
    perturbed = {"kind": "perturbed", "amplitude": 0.3, "degrees": 4, "seed": 1}
    density = mf.simulate(CASE | {"domain": CIRCLE, "initial": perturbed}).density[-1]
    mesh = circle(256)
    cells = PointMeasure("S1", mesh.centers, density * mesh.volumes, mesh.volumes)
    found = {}
    for sampling in ("quantiles", "random"):
        run = mf.simulate(CASE | {"domain": TOKENS, "initial": perturbed | {"sampling": sampling}})
        found[sampling] = distance(cells, run.position[-1])
    assert found["quantiles"] < found["random"] / 4, found


@pytest.mark.parametrize(
    ("domain", "initial", "expected"),
    [
        (CIRCLE, {"kind": "uniform", "sampling": "sobol"}, 'sampling = "sobol": expected "random" on the circle'),
        (TOKENS | {"dimension": 4}, {"kind": "uniform", "sampling": "quantiles"},
         'sampling = "quantiles": expected "random" or "sobol" for particles with domain.dimension > 3'),
        (TOKENS | {"dimension": 3}, {"kind": "gaussian", "sampling": "quantiles"},
         'sampling = "quantiles": expected "random" or "sobol" for particles with domain.dimension > 2'),
        (TOKENS | {"dimension": 1}, {"kind": "uniform", "sampling": "sobol"},
         'sampling = "sobol": expected "random" for particles with domain.dimension = 1'),
        (TOKENS, {"kind": "uniform", "sampling": "halton"},
         'sampling = "halton": expected one of "quantiles", "random"'),
        (TOKENS | {"count": 1}, {"kind": "points", "points": [[1.0, 0.0]], "sampling": "sobol"},
         'sampling = "sobol": not valid for kind "points"; only for "uniform", "perturbed", "harmonic"'),
        (CIRCLE, {"kind": "by_label", "parts": [{"kind": "uniform", "sampling": "sobol"}]},
         r'initial.parts\[0\].sampling = "sobol": expected "random" on the circle'),
    ],
)  # fmt: skip
def test_refused_in_a_line(domain, initial, expected):
    norm = "none" if initial["kind"] == "gaussian" or domain.get("dimension") == 1 else "post"
    attention = {"beta": 1.0} | ({"mask": "causal"} if initial["kind"] == "by_label" else {})
    case = CASE | {"domain": domain, "initial": initial, "stabilizers": {"layer_norm": norm}, "attention": attention}
    with pytest.raises(mf.CaseError, match=expected) as caught:
        mf.load_case(case)
    assert "\n" not in str(caught.value)
