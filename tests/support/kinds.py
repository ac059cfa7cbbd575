"""Small cases of every kind of run: each domain, and each option that changes a run's file or its pictures."""

from __future__ import annotations

from typing import Any

BUMPS = {"kind": "perturbed", "amplitude": 0.5, "degrees": 3, "seed": 1}
SPREAD = {"kind": "gaussian", "mean": 0.3, "variance": 0.2}
FREE = {"radii": 12, "innermost": 0.02, "outermost": 20.0, "core": 1.0}
HAND_OVER: dict[str, Any] = {"spread": 3.0}


def _case(domain: dict[str, Any], initial: dict[str, Any] | None, end: float = 1.0, **more: Any) -> dict[str, Any]:
    tables: dict[str, Any] = {"title": "A small run", "domain": domain, "attention": {"beta": 4.0}}
    tables |= {"time": {"end": end}, "output": {"snapshots": 2 if "handover" in more else 1, "samples": 8}} | more
    return tables if initial is None else tables | {"initial": initial}


def _tokens(dimension: int, count: int, **more: Any) -> dict[str, Any]:
    waves = {"kind": "waves", "amplitude": 1.0, "mean": [0.1] + [0.0] * (dimension - 1)}
    start = waves if "sequence" in more else {"kind": "uniform"}
    domain = {"manifold": "particles", "dimension": dimension, "count": count}
    return _case(domain, more.pop("initial", start), more.pop("end", 3.0), **more)


CASES: dict[str, dict[str, Any]] = {
    "circle": _case({"manifold": "circle", "resolution": 64}, BUMPS, 4.0),
    "circle, causal mask": _case(
        {"manifold": "circle", "resolution": 48, "labels": 4}, BUMPS, attention={"beta": 2.0, "mask": "causal"}
    ),
    "circle to atoms": _case(
        {"manifold": "circle", "resolution": 64},
        {"kind": "points", "points": [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.2]], "masses": [0.5, 0.3, 0.2]},
        1e4,
        handover=HAND_OVER,
    ),
    "sphere": _case({"manifold": "sphere", "resolution": 16}, BUMPS, 4.0),
    "axisymmetric": _case({"manifold": "axisymmetric", "resolution": 32, "dimension": 8}, BUMPS),
    "line": _case(
        {"manifold": "line", "resolution": 224, "outermost": 30.0}, SPREAD, 0.3, stabilizers={"layer_norm": "none"}
    ),
    "free_radius_circle": _case(
        {"manifold": "free_radius_circle", "resolution": 32} | FREE, BUMPS, 0.3, stabilizers={"layer_norm": "pre"}
    ),
    "free_radius_sphere": _case(
        {"manifold": "free_radius_sphere", "resolution": 8} | FREE, BUMPS, 0.3, stabilizers={"layer_norm": "peri"}
    ),
    "tokens in 1 dimension": _tokens(
        1, 12, initial={"kind": "gaussian", "mean": [0.3], "variance": 0.2}, stabilizers={"layer_norm": "none"}, end=0.3
    ),
    "tokens in 2 dimensions": _tokens(2, 24),
    "tokens in 2 dimensions, many": _tokens(2, 400),
    "tokens in 3 dimensions": _tokens(3, 24),
    "tokens in 3 dimensions, many": _tokens(3, 3100, end=0.5),
    "tokens in 3 dimensions, radius": _tokens(3, 24, stabilizers={"layer_norm": "pre"}),
    "tokens in 16 dimensions": _tokens(16, 24, attention={"beta": 1.0}, end=20.0),
    "tokens in 16 dimensions to atoms": _tokens(
        16, 4, end=1e4, handover=HAND_OVER, initial={"kind": "equiangular", "cosine": 0.5}
    ),
    "tokens by layers": _tokens(3, 24, time={"method": "layers", "layers": 6, "step": 0.5}),
    "sequence": _tokens(3, 40, sequence={"length": 1.0, "diffusion": 1e-3}),
}
