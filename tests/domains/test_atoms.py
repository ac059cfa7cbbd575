"""Atoms: exact solutions for drift far below rounding, mergers at exponentially long times, staircases of the
energy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate
from support import exact_atoms
from support.exact_flow import flow

from meanfield.domains.atoms.flow import MERGE_ANGLE, advance, until_merger
from meanfield.domains.atoms.velocity import Atoms, AtomVelocity
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.model.feed_forward import feed_forward_random
from meanfield.model.heads import Head
from meanfield.model.layer_norm import LayerNorm

PAIR = np.array([[1.0, 0.0], [np.cos(2.0), np.sin(2.0)]])
THREE = np.array([[1.0, 0.1, 0.3], [-0.4, 1.0, 0.2], [-0.5, -0.9, 0.4]])
THREE /= np.linalg.norm(THREE, axis=1)[:, None]
MASSES = np.array([0.5, 0.3, 0.2])


def on_circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def on_sphere(count, d, seed=0):
    points = np.random.default_rng(seed).standard_normal((count, d))
    return points / np.linalg.norm(points, axis=1)[:, None]


def law(beta, normalization="softmax", **fields):
    return AtomVelocity(ParticleVelocity(float(beta), normalization, **fields))


def staircase(beta, atoms):
    """Return 2βe^{−β}E = Σ_ij m_i m_j e^{−β|x_i − x_j|²/2}."""
    apart = atoms.positions[:, None] - atoms.positions
    return atoms.masses @ np.exp(-beta / 2 * (apart**2).sum(axis=2)) @ atoms.masses


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("norm", ["post", "ngpt", "cod"])
def test_the_law_is_that_of_particles(d, normalization, norm):
    """The test has several heads of any matrices, a network, each layer norm, and a time at which CoD matters."""
    random = np.random.default_rng(d)
    matrices = random.standard_normal((3, d, d))
    heads = (Head(), Head(*matrices, weight=0.7), Head(1.0, -1.0, -0.5, 0.3))
    masses = random.random(6) + 0.1
    particles = ParticleVelocity(
        3.0, normalization, heads, masses, LayerNorm(norm, alpha=0.7), feed_forward_random(d, 8)
    )
    positions = on_sphere(6, d)
    found = AtomVelocity(particles).velocities(2.0, positions, masses)
    expected, _ = particles.rates(2.0, positions, np.ones(6))
    # the particles' sums round relative to the size of their output
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("beta", [4, 50, 200])
@pytest.mark.parametrize("d", [2, 3])
def test_drift_is_right_relative_to_itself(beta, d, normalization):
    """β = 200 has drift down to e^{−300}. Exponents round at β times 1e-16, and so does the drift."""
    positions, masses = on_sphere(5, d, seed=d), np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    found = law(beta, normalization).velocities(0.0, positions, masses)
    exact = exact_atoms.velocities(beta, positions, masses, normalization)
    assert exact_atoms.relative_errors(found, exact).max() < 1e-14 + beta * 5e-16


def test_drift_near_the_antipode_is_right_relative_to_itself():
    """The atoms are 1e-10 rad from antipodes, where P_i x_j from x_j − x_i would be accurate to 1e-6 at best."""
    positions, masses = on_circle(np.array([0.3, 0.3 + np.pi - 1e-10])), np.array([0.6, 0.4])
    exact = exact_atoms.velocities(3, positions, masses)
    found = law(3).velocities(0.0, positions, masses)
    assert exact_atoms.relative_errors(found, exact).max() < 1e-8


def test_rescaled_attention_is_the_same_by_another_clock():
    positions, masses = on_sphere(4, 3), np.full(4, 0.25)
    unnormalized = ParticleVelocity(5.0, "unnormalized", (Head(query=2.0, key=np.diag([1.0, 0.5, 0.5])),))
    rescaled = AtomVelocity(replace(unnormalized, rescaled=True)).velocities(0.0, positions, masses)
    np.testing.assert_allclose(
        rescaled * np.exp(10.0), AtomVelocity(unnormalized).velocities(0.0, positions, masses), rtol=1e-12
    )
    huge = AtomVelocity(ParticleVelocity(1e4, "unnormalized", rescaled=True))
    near = on_circle(np.array([0.0, 1e-3]))
    speed = np.linalg.norm(huge.velocities(0.0, near, np.array([0.5, 0.5])), axis=1)
    np.testing.assert_allclose(speed, 0.5 * np.sin(1e-3) * np.exp(1e4 * (np.cos(1e-3) - 1)), rtol=1e-8)


def test_what_atoms_cannot_be_is_refused():
    with pytest.raises(ValueError, match="positive masses"):
        Atoms(PAIR, np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="expected \\(k, d\\) and \\(k,\\)"):
        Atoms(PAIR, MASSES)
    with pytest.raises(ValueError, match="unit sphere"):
        Atoms(2 * PAIR, np.array([0.5, 0.5]))


def assert_cosine_half_at(beta, masses, expected):
    """Assert that the cosine is ½ within a relative 1e-6 of the time."""
    atoms = Atoms(PAIR, np.array(masses))
    (_, before, _), (_, after, _) = exact_atoms.flow(
        law(beta), atoms, [0.0, expected * (1 - 1e-6), expected * (1 + 1e-6)]
    )
    cosines = [state.positions[0] @ state.positions[-1] for state in (before, after)]
    assert cosines[0] < 0.5 < cosines[1], f"cosines {cosines}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("beta", [4, 9, 16, 25, 50, 200])
def test_two_equal_atoms_meet_at_the_time_of_the_closed_form(beta):
    """The time for β = 200 is 3e120."""
    assert_cosine_half_at(beta, (0.5, 0.5), exact_atoms.pair_time_equal(beta))


@pytest.mark.parametrize("masses", [(0.7, 0.3), (0.99, 0.01)])
def test_two_unequal_atoms_meet_at_the_time_of_the_quadrature(masses):
    assert_cosine_half_at(9, masses, exact_atoms.pair_time(9, masses))


def test_nearly_opposite_atoms_leave_each_other_at_their_rate():
    """β = 9, from 1e-10 off the antipode, a tenth of the tolerance: cosine ½ within 1e-5 of the closed form's 7e8."""
    expected = exact_atoms.pair_time_equal(9, exact_atoms.mp.pi - exact_atoms.mp.mpf("1e-10"))
    atoms = Atoms(np.array([[1.0, 0.0], [-1.0, 1e-10]]), np.array([0.5, 0.5]))
    stops = [0.0, expected * (1 - 1e-5), expected * (1 + 1e-5)]
    cosines = [now.positions[0] @ now.positions[-1] for _, now, _ in exact_atoms.flow(law(9), atoms, stops)]
    assert cosines[0] < 0.5 < cosines[1], f"cosines {cosines}"


def test_an_atom_leaves_an_unstable_place_at_its_rate():
    """V = diag(2, 1): the tangent of the angle to the second axis grows as eᵗ, from 1e-12; no step skips it."""
    turning = law(1, heads=(Head(value=np.diag([2.0, 1.0])),))
    start = Atoms(np.array([[1e-12, 1.0]]), np.array([1.0]))
    halfway, _ = advance(turning, start, 0.0, -np.log(1e-12))
    # Newton's iteration ends at about 1e-14, at worst a relative 1e-2 of the first steps
    np.testing.assert_allclose(halfway.positions, [[np.sqrt(0.5), np.sqrt(0.5)]], rtol=0, atol=1e-3)
    end, _ = advance(turning, start, 0.0, 1e6)
    np.testing.assert_allclose(end.positions, [[1.0, 0.0]], rtol=0, atol=1e-9)


def test_the_references_agree():
    assert exact_atoms.pair_time_equal(9) == pytest.approx(21353.5091997, rel=1e-11)  # ORACLES
    assert exact_atoms.pair_time(9, (0.5, 0.5)) == pytest.approx(exact_atoms.pair_time_equal(9), rel=1e-12)


def meeting_times(beta, positions, masses, end):
    """Return the times at which pairs of particles touch, from the velocity written out, DOP853 at 1e-13."""
    pairs = [(i, j) for i in range(len(masses)) for j in range(i)]

    def rate(_, state):
        x = state.reshape(positions.shape)
        x = x / np.linalg.norm(x, axis=1)[:, None]
        kernel = masses * np.exp(beta * (x @ x.T - 1))
        output = kernel @ x / kernel.sum(axis=1)[:, None]
        return (output - (output * x).sum(axis=1)[:, None] * x).ravel()

    def event(i, j):
        return lambda _, state: np.linalg.norm(np.diff(state.reshape(positions.shape)[[i, j]], axis=0)) - MERGE_ANGLE

    solution = integrate.solve_ivp(
        rate, (0.0, end), positions.ravel(), "DOP853", rtol=1e-13, atol=1e-13, events=[event(*pair) for pair in pairs]
    )
    return np.sort([times[0] for times in solution.t_events if len(times)])


def test_three_unequal_clusters_on_the_sphere_merge_when_particles_do():
    """β = 5: after the first merger its two particles meet the third together, at one time."""
    _, mergers = advance(law(5), Atoms(THREE, MASSES), 0.0, 1e4)
    expected = meeting_times(5.0, THREE, MASSES, mergers[-1].time + 1)
    assert len(mergers) == 2
    # particles of one atom stay MERGE_ANGLE apart, which changes the time by a relative 1e-6
    np.testing.assert_allclose([merger.time for merger in mergers], expected[:2], rtol=1e-5)


def first_contact(rate, positions, time, end):
    """Return time and positions at the first contact of two particles that follow ``rate``, LSODA at 1e-10; None
    without."""
    one, other = np.triu_indices(len(positions), 1)

    def place(state):
        x = state.reshape(positions.shape)
        return x / np.linalg.norm(x, axis=1)[:, None]

    def gap(_, state):
        x = place(state)
        return np.linalg.norm(x[one] - x[other], axis=1).min() - MERGE_ANGLE

    gap.terminal, gap.direction = True, -1
    found = integrate.solve_ivp(
        lambda _, state: rate(place(state)).ravel(),
        (time, end), positions.ravel(), "LSODA", events=gap, rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    return (float(found.t[-1]), place(found.y[:, -1])) if found.status == 1 else None


def mergers_by_events(beta, normalization, positions, masses, end):
    """Return (time, lighter mass, heavier mass) of each merger, from the velocity written out and events of SciPy."""
    found, time = [], 0.0

    def rate(x):
        kernel = masses * np.exp(beta * (x @ x.T))
        output = kernel @ x / (kernel.sum(axis=1)[:, None] if normalization == "softmax" else 1.0)
        return output - (output * x).sum(axis=1)[:, None] * x

    while len(masses) > 1 and (contact := first_contact(rate, positions, time, end)):
        time, positions = contact
        apart = np.linalg.norm(positions[:, None] - positions, axis=2) + 9 * np.tri(len(positions))
        i, j = np.unravel_index(apart.argmin(), apart.shape)
        found.append((time, *sorted((masses[i], masses[j]))))
        total, masses = masses[i] * positions[i] + masses[j] * positions[j], masses.copy()
        positions[i], masses[i] = total / np.linalg.norm(total), masses[i] + masses[j]
        positions, masses = np.delete(positions, j, axis=0), np.delete(masses, j)
    return np.array(found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_all_mergers_of_random_atoms_are_found(seed):
    """A step of a run ends at the first merger: none is missed, and times agree within the effect of TOLERANCE."""
    random, normalization = np.random.default_rng(seed), ("softmax", "unnormalized")[seed // 3]
    count, d, beta = 5, 2 + seed % 3, float(random.uniform(1, 7))
    atoms = Atoms(on_sphere(count, d, seed), random.dirichlet(np.ones(count)))
    found, time, end = [], 0.0, {"softmax": 300.0, "unnormalized": 30.0}[normalization]
    expected = mergers_by_events(beta, normalization, atoms.positions, atoms.masses, end)
    while time < end:
        atoms, time, mergers = until_merger(law(beta, normalization), atoms, time, end)
        found += [(merger.time, *sorted(merger.masses)) for merger in mergers]
    assert len(expected) >= 3
    # Times have relative errors of 1e-7, and the mergers about β times as much.
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_energy_climbs_its_staircase():
    """β = 25: 2βe^{−β}E = Σ m² within 1e-6 between mergers, the size of e^{β(cos − 1)}; a merger adds 2 m_i m_j."""
    start = Atoms(THREE, MASSES)
    _, mergers = advance(law(25), start, 0.0, 1e30)
    first, second = (merger.time for merger in mergers)
    times = [0.0, first / 2, first * (1 + 1e-6), (first + second) / 2, second * (1 + 1e-6), 1e30]
    stages = [start, *(atoms for _, atoms, _ in exact_atoms.flow(law(25), start, times))]
    steps = [staircase(25, atoms) for atoms in stages]
    square, pair = (MASSES**2).sum(), 2 * np.prod(mergers[0].masses)
    np.testing.assert_allclose(steps, [square, square, square + pair, square + pair, 1, 1], rtol=1e-6)


def test_mergers_keep_mass_and_the_first_moment():
    """Three atoms merge at one point and two at another: the moments differ by MERGE_ANGLE squared."""
    angles = np.array([0.0, 0.5e-6, 1.0e-6, 2.0, 2.0 + 0.5e-6])
    atoms = Atoms(on_circle(angles), np.array([0.1, 0.2, 0.3, 0.15, 0.25]))
    merged, mergers = advance(law(9), atoms, 7.0, 7.0)
    assert (merged.count, [merger.time for merger in mergers]) == (2, [7.0] * 3)
    np.testing.assert_allclose(merged.masses, [0.6, 0.4], rtol=1e-15)
    np.testing.assert_allclose(merged.masses @ merged.positions, atoms.masses @ atoms.positions, rtol=0, atol=1e-12)
    np.testing.assert_allclose(mergers[-1].position, merged.positions[1], rtol=0, atol=0)
    assert sorted(mergers[-1].masses) == [0.15, 0.25]


def test_a_ladder_of_twelve_clusters_up_to_1e30():
    """β = 40: mergers from t = 10 to 10^15; two atoms are left, which would need e^{40 (1 − cos)} more."""
    random = np.random.default_rng(3)
    angles = 2 * np.pi * (np.arange(12) + 0.6 * (random.random(12) - 0.5)) / 12
    masses = random.random(12) + 0.5
    atoms, mergers = advance(law(40), Atoms(on_circle(angles), masses / masses.sum()), 0.0, 1e30)
    times = [merger.time for merger in mergers]
    assert atoms.count + len(mergers) == 12
    assert atoms.count <= 3
    assert times == sorted(times)
    assert times[-1] > 1e12
    assert atoms.masses.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize(
    ("heads", "attracts"),
    [
        ((Head(), Head(2.0, 3.0, 0.5)), True),
        ((Head(-2.0, -1.0),), True),
        ((Head(value=-1.0, weight=-1.0),), True),
        ((Head(), Head(-1.0)), False),
        ((Head(value=-1.0),), False),
        ((Head(weight=-1.0),), False),
        ((Head(value=np.diag([2.0, 1.0])),), False),
        ((Head(query=np.diag([2.0, 1.0])),), False),
        ((Head(value=np.ones((1, 2)), out=np.ones((2, 1))),), False),
    ],
)
def test_atoms_attract_where_beta_and_all_multiples_of_i_are_positive(heads, attracts):
    assert law(3, heads=heads).only_attracts is attracts
    assert not law(3, heads=heads, feed_forward=lambda x: x).only_attracts


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_mergers_do_not_depend_on_the_ode_method(normalization):
    explicit, stiff = law(7, normalization), law(7, normalization)
    vars(stiff)["only_attracts"] = False
    _, mergers = advance(explicit, Atoms(THREE, MASSES), 0.0, 1e7)
    _, others = advance(stiff, Atoms(THREE, MASSES), 0.0, 1e7)
    assert len(mergers) == len(others) == 2
    # about β times the tolerance of each of some hundred steps
    np.testing.assert_allclose([m.time for m in mergers], [m.time for m in others], rtol=1e-6)


def test_rotations_commute_with_the_flow():
    rotation = np.linalg.qr(np.random.default_rng(5).standard_normal((3, 3)))[0]
    plain, mergers = advance(law(9), Atoms(THREE, MASSES), 0.0, 1e5)
    turned, others = advance(law(9), Atoms(THREE @ rotation.T, MASSES), 0.0, 1e5)
    assert plain.count == turned.count
    np.testing.assert_allclose(turned.positions, plain.positions @ rotation.T, rtol=0, atol=1e-8)  # 100 tolerances
    np.testing.assert_allclose([m.time for m in others], [m.time for m in mergers], rtol=1e-7)  # β times the tolerance


def test_a_resumed_flow_is_the_same_bit_for_bit():
    atoms = Atoms(THREE, MASSES)
    times = [0.0, 100.0, 200.0, 5e3]
    whole = list(exact_atoms.flow(law(5), atoms, times))
    _, half, _ = whole[0]
    resumed = list(exact_atoms.flow(law(5), Atoms(half.positions.copy(), half.masses.copy()), times[1:]))
    for (_, one, some), (_, other, others) in zip(resumed, whole[1:], strict=True):
        assert np.array_equal(one.positions, other.positions)
        assert [m.time for m in some] == [m.time for m in others]
    assert whole[-1][2], "no merger to compare"


def test_stops_on_the_way_change_little():
    """50 stops, one of them within a merger: at MERGE_ANGLE an error of 1e-9 in the angle is one of 1e-5 in time."""
    atoms = Atoms(THREE, MASSES)
    _, mergers = advance(law(5), atoms, 0.0, 5e3)
    stops = sorted([*np.linspace(0.0, 5e3, 50), mergers[0].time - 3.0])
    found = [merger for _, _, merged in exact_atoms.flow(law(5), atoms, stops) for merger in merged]
    np.testing.assert_allclose([m.time for m in found], [m.time for m in mergers], rtol=1e-7, atol=1e-5)


def test_until_merger_stops_at_the_first_of_all():
    atoms = Atoms(THREE, MASSES)
    _, mergers = advance(law(5), atoms, 0.0, 5e3)
    after, time, found = until_merger(law(5), atoms, 0.0, 5e3)
    assert [merger.time for merger in found] == [mergers[0].time]
    assert (after.count, time) == (2, found[0].time)
    before, time, none = until_merger(law(5), atoms, 0.0, found[0].time / 2)
    assert (before.count, time, none) == (3, found[0].time / 2, ())


def test_until_merger_stops_where_two_touch_and_not_at_the_end_of_its_step():
    """Unnormalized attention, φ̇ = −e^{β(cos φ − 1)} sin φ in ``rescaled`` time, down to the chord MERGE_ANGLE."""
    beta, angle = 4.0, 0.4
    atoms = Atoms(on_circle([0.0, angle]), np.array([0.7, 0.3]))
    touching = 2 * np.arcsin(MERGE_ANGLE / 2)
    exact, _ = integrate.quad(
        lambda log: 1 / (np.exp(beta * (np.cos(np.exp(log)) - 1)) * np.sinc(np.exp(log) / np.pi)),
        np.log(touching), np.log(angle),
    )  # fmt: skip
    after, time, _ = until_merger(law(beta, "unnormalized", rescaled=True), atoms, 0.0, 1e6)
    assert after.count == 1
    assert time == pytest.approx(exact, abs=1e-4)  # 1e-9 of a step, over MERGE_ANGLE


def test_those_who_touch_at_once_merge_at_once():
    """A square on the circle has two pairs of equal masses that meet at one time up to rounding."""
    atoms = Atoms(on_circle([-0.2, 0.2, np.pi - 0.2, np.pi + 0.2]), np.full(4, 0.25))
    after, _, found = until_merger(law(9), atoms, 0.0, 1e3)
    assert (after.count, len({merger.time for merger in found})) == (2, 1)


def test_what_rests_stays_to_any_time():
    """Opposite atoms, and atoms so far apart that their attraction, e^{−14000}, underflows, do not move."""
    opposite = Atoms(np.array([[0.6, 0.8], [-0.6, -0.8]]), np.array([0.3, 0.7]))
    for atoms, beta in ((opposite, 1), (Atoms(PAIR, np.array([0.5, 0.5])), 1e4)):
        later, mergers = advance(law(beta), atoms, 0.0, 1e300)
        assert np.array_equal(later.positions, atoms.positions)
        assert not mergers


def test_a_call_with_nothing_to_do_needs_few_velocities(monkeypatch):
    velocities, calls = AtomVelocity.velocities, []
    monkeypatch.setattr(AtomVelocity, "velocities", lambda *given: calls.append(1) or velocities(*given))
    advance(law(40), Atoms(on_circle(np.array([0.0, 2.0, 4.1])), MASSES), 0.0, 1e5)
    assert 1 <= len(calls) <= 40, "twelve stages of a step, its start, and rates of growth"


@pytest.mark.parametrize("norm", ["post", "ngpt", "cod"])
def test_general_matrices_and_a_network_move_atoms_as_particles(norm):
    """The flow runs from t = 2 to 3; the particles' flow is Dormand and Prince's at 1e-12."""
    matrices = np.random.default_rng(8).standard_normal((3, 3, 3))
    particles = ParticleVelocity(
        2.0, "softmax", (Head(*matrices), Head()), MASSES, LayerNorm(norm), feed_forward_random(3, 6, "tanh")
    )
    atoms, mergers = advance(AtomVelocity(particles), Atoms(THREE, MASSES), 2.0, 3.0)
    expected, _ = flow(particles, THREE, np.ones(3), np.array([2.0, 3.0]), 1e-12)
    assert not mergers
    np.testing.assert_allclose(atoms.positions, expected[-1], rtol=0, atol=1e-8)  # 100 tolerances


def test_cod_is_post_by_its_clock():
    """CoD until t = (τ/2 + 1)² − 1 equals post until τ = 2(√(t + 1) − 1)."""
    atoms = Atoms(PAIR, np.array([0.5, 0.5]))
    (post,) = advance(law(16), atoms, 0.0, 1e10)[1]
    (cod,) = advance(law(16, norm=LayerNorm("cod")), atoms, 0.0, 1e20)[1]
    assert cod.time == pytest.approx((post.time / 2 + 1) ** 2 - 1, rel=1e-7)  # β times the tolerance


def test_repelled_atoms_come_to_rest_evenly_spaced():
    """V = −I, β = 9, to 10^20: the last motion is a relaxation at e^{−cβ}."""
    atoms = Atoms(on_circle(np.array([0.0, 1.0, 2.2, 3.9, 5.0])), np.full(5, 0.2))
    later, mergers = advance(law(9, heads=(Head(value=-1.0),)), atoms, 0.0, 1e20)
    angles = np.sort(np.arctan2(later.positions[:, 1], later.positions[:, 0]))
    assert not mergers
    np.testing.assert_allclose(np.diff(angles), 2 * np.pi / 5, rtol=0, atol=1e-8)  # 100 tolerances
