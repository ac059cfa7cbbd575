"""Problems of cases: settings that no other test reads from a case file."""

import h5py
import numpy as np
import pytest
from support.status import DONE, run

from meanfield.analysis.stability_report import critical_noise_of, rates_of
from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.domains.sphere.initial import initial_points
from meanfield.simulation import set_up
from solvers.io.run_file import read

CASE = """
[domain]
manifold = "sphere"
resolution = 24
[attention]
beta = 9.0
[initial]
kind = "perturbed"
amplitude = 0.5
degrees = 6
[time]
end = 1.0
"""


def law_of(*overrides):
    """Return the velocity of the case and its density at time 0."""
    problem = set_up(parse(CASE, overrides))
    density = problem.initial()
    return problem.diagnostics((), None).sample_of([0.0], density[None]).velocity_at(0.0), density


def embeddings():
    return np.random.default_rng(4).standard_normal((5, 3)) * np.arange(1, 6)[:, None]


def tokens_from(path, dataset="tokens"):
    initial = f'initial={{kind = "tokens", file = "{path}", dataset = "{dataset}"}}'
    return set_up(parse(CASE, [initial]))


def test_tokens_are_equal_point_masses_in_their_directions(tmp_path):
    np.save(tmp_path / "tokens.npy", embeddings())
    with h5py.File(tmp_path / "tokens.h5", "w") as file:
        file["layer/3"] = embeddings()
    for problem in (tokens_from(tmp_path / "tokens.npy"), tokens_from(tmp_path / "tokens.h5", "layer/3")):
        assert np.array_equal(problem.initial(), initial_points(problem.space, embeddings().tolist()))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((4, 2)), r"expected an array \(n, 3\), got \(4, 2\)"),
        (np.zeros((4, 3)), "expected finite vectors that are not zero"),
        (np.full((4, 3), np.nan), "expected finite vectors that are not zero"),
    ],
)
def test_tokens_that_have_no_direction_here_are_refused(tmp_path, array, message):
    np.save(tmp_path / "tokens.npy", array)
    with pytest.raises(CaseError, match=rf"initial.file = .*tokens.npy: {message}"):
        tokens_from(tmp_path / "tokens.npy").initial()


def test_missing_tokens_are_refused_in_a_line(tmp_path):
    with pytest.raises(CaseError, match=r"none\.npy") as caught:
        tokens_from(tmp_path / "none.npy").initial()
    assert "\n" not in str(caught.value)
    with h5py.File(tmp_path / "tokens.h5", "w") as file:
        file["words"] = embeddings()
    with pytest.raises(CaseError, match=r"no dataset tokens; there are words"):
        tokens_from(tmp_path / "tokens.h5").initial()


def test_a_larger_sphere_is_a_larger_beta():
    """Tokens gθ attend by e^{βg²⟨θ,θ'⟩}, and θ̇ = P_θ A(gθ)/g: the unit sphere with β g²."""
    wide, density = law_of("attention.beta=4", "stabilizers.scale=1.5")
    unit, _ = law_of("attention.beta=9")
    assert np.array_equal(wide(0.0, density), unit(0.0, density))


def test_a_network_sees_the_larger_sphere():
    """θ̇ = P_θ F(gθ)/g: for F(x) = W(x + b), b so large that relu passes all, and g = 2, the rate is P_θ W(θ + b/2)."""
    identity, turn = np.eye(3), np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    law, density = law_of(
        f"attention.value={np.zeros((3, 3)).tolist()}",
        f"feed_forward={{inner = {identity.tolist()}, bias = [30.0, 30.0, 30.0], outer = {turn.tolist()}}}",
        "stabilizers.scale=2",
    )
    x = law.centers
    local = (x + 15.0) @ turn.T
    expected = local - (local * x).sum(axis=1)[:, None] * x
    np.testing.assert_allclose(law(0.0, density), expected, atol=1e-12)


NOISY = """
[domain]
manifold = "circle"
resolution = 128
[attention]
beta = 2.0
[stabilizers]
noise = 0.5
[initial]
kind = "harmonic"
degree = 1
amplitude = 0.5
[time]
end = 1.0
[output]
snapshots = 1
samples = 1
"""


def test_noise_acts_on_the_larger_sphere(tmp_path):
    """κΔ on the circle of radius g: directions diffuse with κ/g², and their mean decays as e^{−κt/g²}."""
    case = parse(NOISY, ["stabilizers.scale=2", "attention.value=[[0, 0], [0, 0]]"])
    assert run(case, tmp_path / "run.h5", quiet=True) == DONE
    centroid = read(tmp_path / "run.h5").diagnostics["centroid"]
    # h²/12 = 2e-4 of the exponent is the error of second-order differences
    np.testing.assert_allclose(centroid[-1, 0] / centroid[0, 0], np.exp(-0.5 / 4), rtol=5e-5)


def test_noisy_tokens_of_a_larger_sphere_are_those_of_the_unit_one(tmp_path):
    """Runs agree bit for bit, with β g² and κ/g² for a power of two; the file states that they are directions."""
    tokens = NOISY.replace('"circle"', '"particles"').replace("resolution = 128", "dimension = 3\ncount = 20")
    cases = ["stabilizers.scale=2"], ["attention.beta=8", "stabilizers.noise=0.125"]
    for name, changes in zip("ab", cases, strict=True):
        assert run(parse(tokens, changes), tmp_path / f"{name}.h5", quiet=True) == DONE
    positions = [read(tmp_path / f"{name}.h5").positions(-1) for name in "ab"]
    assert np.array_equal(*positions)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["position"].attrs["long_name"] == "position of each token, its direction: x over stabilizers.scale"


def test_critical_noise_is_that_of_the_larger_sphere():
    """Linear theory with κ/g² and β g²: at the critical κ the fastest mode neither grows nor decays."""
    critical = critical_noise_of(parse(NOISY, ["stabilizers.scale=2"]))
    assert critical == pytest.approx(4 * critical_noise_of(parse(NOISY, ["attention.beta=8"])), rel=1e-14)
    rates = rates_of(parse(NOISY, ["stabilizers.scale=2", f"stabilizers.noise={critical!r}"]), [1, 2, 3])
    assert abs(rates.max()) < 1e-12
