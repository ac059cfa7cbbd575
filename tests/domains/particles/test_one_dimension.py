"""Tokens on the line as particles: their equation, recorded and drawn data, and refusals of what needs a sphere."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.figures.figure import plot

POINTS = [[-1.0], [0.3], [0.8]]
CHANGES = ["stabilizers.layer_norm=none", f"initial.points={POINTS}", "attention.beta=1.5", "time.end=1.5"]


def test_tokens_on_the_line_move_by_softmax_attention(tmp_path):
    def rate(time, x):
        weights = np.exp(1.5 * x[:, None] * x)
        return weights @ x / weights.sum(axis=1)

    result = mf.run(mf.load_case("tokens_pair", CHANGES), tmp_path / "line.h5")
    exact = solve_ivp(rate, (0, 1.5), np.ravel(POINTS), rtol=1e-11, atol=1e-13).y[:, -1]
    assert np.asarray(result.position)[-1, :, 0] == pytest.approx(exact, rel=1e-8)  # steps to 1e-10
    assert "leaders" in result.diagnostics
    assert "clusters" not in result.diagnostics
    assert plot(tmp_path / "line.h5", tmp_path / "line.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            ["stabilizers.layer_norm=post"],
            "domain.dimension = 1: expected at least 2 with stabilizers.layer_norm = post",
        ),
        (['output.diagnostics=["clusters"]'], "output.diagnostics = .*clusters.*: expected one or more of mass"),
    ],
)
def test_what_needs_a_sphere_is_refused(changes, line):
    with pytest.raises(mf.CaseError, match=line):
        mf.load_case("tokens_pair", [*CHANGES, *changes])
