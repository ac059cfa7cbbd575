"""Densities in float32, on request from a case."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.case.errors import CaseError
from meanfield.domains.sphere.precision import error
from meanfield.runtime.cost import estimate

# Relative to the largest density after 20 steps: each rounds ten times, by 6e-8, differences that are a tenth.
SINGLE = 1e-5
CASES = [
    ("metastable_circle", ["domain.resolution=64"]),
    ("noise_above", ["domain.resolution=64"]),
    ("causal", []),
    ("three_clusters_sphere", ["domain.resolution=12"]),
]


@pytest.mark.parametrize(("name", "changes"), CASES)
def test_error_of_single_precision(name, changes):
    case = mf.load_case(name, [*changes, "domain.precision=single"])
    found = error(case)
    assert 0 < found < SINGLE, f"{found:.1e}"
    assert f"# precision     single: {found:.1e} of the largest density" in estimate(case)


def test_a_run_in_single_precision_is_that_in_double_to_rounding():
    """Files and diagnostics are in float64; mass is kept to the rounding of float32."""
    changes = {"domain.resolution": 64, "time.end": 2.0, "output.samples": 4}
    double = mf.simulate(mf.load_case("merging_pair_circle", changes))
    single = mf.simulate(mf.load_case("merging_pair_circle", changes | {"domain.precision": "single"}))
    assert single.diagnostics["energy"].dtype == np.float64
    for name, rtol in (("energy", 1e-5), ("mass", 1e-6), ("centroid", 1e-5)):
        np.testing.assert_allclose(single.diagnostics[name], double.diagnostics[name], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("change", ["attention.normalization=sinkhorn", "time.method=layers"])
def test_refused_where_rounding_would_rule(change):
    with pytest.raises(CaseError, match=r'domain.precision = .*single.*: expected "double" with'):
        mf.load_case(
            "metastable_circle", ["domain.precision=single", change, *["time.layers=3"] * ("layers" in change)]
        )
