"""Convergence studies: known orders are observed, and the estimate is the error."""

import numpy as np
import pytest

from solvers.analysis.convergence import convergence_study
from solvers.mesh.icosphere import icosphere
from solvers.mesh.product import box


def trapezoid(n):
    """Return ∫₀¹ eˣ dx by n intervals, with the error (e − 1)/(12 n²)."""
    x = np.linspace(0.0, 1.0, n + 1)
    return np.trapezoid(np.exp(x), x)


def perturbed(n):
    """Return averages of sin x over the cells of a box, with an error of 3 cos x/n²."""
    mesh = box((n, n // 2), (2 * np.pi, 1.0), periodic=True)
    x, h = mesh.centers[:, 0], 2 * np.pi / n
    return mesh, np.sin(x) * np.sinc(h / (2 * np.pi)) + 3 * np.cos(x) * np.sinc(h / (2 * np.pi)) / n**2


def test_numbers_against_an_exact_one_and_by_themselves():
    study = convergence_study(trapezoid, (8, 16, 32), exact=np.e - 1)
    assert study.orders[-1] == pytest.approx(2.0, abs=0.01)
    assert study.estimate == pytest.approx((np.e - 1) / (12 * 32**2), rel=1e-3)
    alone = convergence_study(trapezoid, (8, 16, 32))
    assert not alone.exact
    assert alone.orders[-1] == pytest.approx(2.0, abs=0.01)
    assert alone.estimate == pytest.approx(study.estimate, rel=0.01)
    assert "estimated error" in str(alone)
    assert str(study).splitlines()[-1].endswith("2.00")


def test_fields_by_themselves_and_against_a_function():
    alone = convergence_study(perturbed, (8, 16, 32))
    assert alone.orders[-1] == pytest.approx(2.0, abs=0.05)
    assert alone.estimate == pytest.approx(3 / 32**2, rel=0.05)  # relative to |sin|
    study = convergence_study(perturbed, (16, 32), exact=lambda x: np.sin(x[:, 0]))
    assert study.orders[-1] == pytest.approx(2.0, abs=0.05)
    axes = study.plot()
    assert axes.get_xlabel() == "resolution"


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="expected at least 3, as there is no exact answer, increasing"):
        convergence_study(trapezoid, (8, 16))
    with pytest.raises(ValueError, match="expected at least 2, increasing"):
        convergence_study(trapezoid, (16, 8), exact=1.0)
    sphere = lambda n: (icosphere(n), np.ones(icosphere(n).cells))  # noqa: E731
    with pytest.raises(ValueError, match="expected boxes or curves"):
        convergence_study(sphere, (1, 2, 3))
    with pytest.raises(ValueError, match=r"exact of shape \(1,\): expected \(128,\)"):
        convergence_study(perturbed, (16, 32), exact=lambda x: np.ones(1))


@pytest.mark.parametrize("answers", [(1.0, 2.0, 3.0), (1.0, 2.0, 4.0)])
def test_no_error_is_estimated_where_differences_do_not_decrease(answers):
    study = convergence_study(dict(zip((8, 16, 32), answers, strict=True)).get, (8, 16, 32))
    assert np.isnan(study.errors).all()
    assert study.orders[-1] <= 0


def test_an_exact_answer_of_another_kind_is_refused():
    with pytest.raises(ValueError, match=r"exact = .*: expected a number"):
        convergence_study(trapezoid, (8, 16), exact=lambda x: x)
    with pytest.raises(ValueError, match=r"exact = 1.0: expected a function of the centers"):
        convergence_study(perturbed, (8, 16), exact=1.0)
