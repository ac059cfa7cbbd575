"""Tokens on the circle with weak repulsion, β < 0, end in one cluster (docs/theory.md, Repulsion)."""

from pathlib import Path

import numpy as np
import pytest

import meanfield as mf

COUNTS, BETAS, SEEDS = (3, 5, 9), (-0.2, -0.4, -0.6), 12


@pytest.mark.sampled(1)
@pytest.mark.parametrize("count", COUNTS)
def test_weak_repulsion_ends_in_one_cluster(count: int) -> None:
    """Attention at −β with Q = −I is that at β: |Σx|/n = 1 to rounding of closest approaches by t = 2000."""
    changes = ["domain.dimension=2", f"domain.count={count}", "attention.query=[[-1,0],[0,-1]]", "initial.kind=uniform"]
    changes += ["time.end=2000", "time.tolerance=1e-6", "output.snapshots=1", "output.samples=10"]
    case = mf.load_case("tokens_pair", [*changes, 'output.diagnostics=["centroid"]'])
    keys = {"attention.beta": [-beta for beta in BETAS], "domain.seed": range(SEEDS)}
    lengths = np.asarray(mf.sweep(case, keys, jobs=1)["centroid_length"])
    assert lengths.min() > 1 - 1e-9


def test_the_page_on_theory_says_how_many_starts_were_tried() -> None:
    text = " ".join((Path(__file__).parents[3] / "docs" / "theory.md").read_text("utf-8").split())
    total = len(COUNTS) * len(BETAS) * SEEDS
    assert f"{total} random starts of 3, 5 and 9 tokens at $\\beta = -0.2$, $-0.4$ and $-0.6$" in text
