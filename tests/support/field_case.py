"""Layers of a PDE network as a case of particles in a sequence, which `meanfield run` solves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import tomli_w
from torch import Tensor

from meanfield.case.case import Case
from meanfield.case.load import parse
from meanfield.transformer.networks.field import COEFFICIENTS, FieldLayer
from meanfield.transformer.networks.network import TokenNetwork
from solvers.mesh.mesh import Floats


def field_case(network: TokenNetwork, states: Floats, folder: Path, first: int = 0, layers: int | None = None) -> Case:
    """Return the case of ``layers`` layers (default: all) from layer ``first`` on, started from the states u (n, d).

    Writes states.npy and matrices.npz into ``folder``, to which the case refers. A case has one F and one set of
    coefficients: layers that differ in them need one case each. Raises ValueError for such layers together.
    """
    own = [layer for layer in network.body.layers if isinstance(layer, FieldLayer)][first:]
    chosen = own[: len(own) if layers is None else layers]
    if not chosen or len({_constants(layer) for layer in chosen}) > 1:
        raise ValueError(f"layers {first} to {first + len(chosen) - 1}: expected a PDE network's, of one F and step")
    np.save(folder / "states.npy", states)
    if chosen[0].network.attention:
        np.savez(folder / "matrices.npz", allow_pickle=False, **_attention(chosen))
    return parse(tomli_w.dumps(_sections(chosen, states, folder)))


def _constants(layer: FieldLayer) -> tuple[Any, ...]:
    """Return the feed-forward network and the coefficients, which all layers of a case must share."""
    inner = id(layer.matrices.inner) if layer.network.feed_forward else None
    return inner, *(float(layer.coefficient(name).detach()) for name in COEFFICIENTS)


def _attention(layers: Sequence[FieldLayer]) -> dict[str, Floats]:
    """Return the factors (layers, heads, ...) of Q, K and V, and the weight α of each head."""
    stacked = {
        name: np.stack([_array(getattr(layer.matrices, name)) for layer in layers])
        for name in ("query", "key", "value", "output")
    }
    alpha = float(layers[0].coefficient("attention_weight").detach())
    return {"out": stacked.pop("output"), **stacked, "weight": np.full(layers[0].network.heads, alpha)}


def _sections(layers: Sequence[FieldLayer], states: Floats, folder: Path) -> dict[str, Any]:
    layer, (n, d) = layers[0], states.shape
    step, diffusion, gate = (float(layer.coefficient(name).detach()) for name in ("step", "diffusion", "gate"))
    network = layer.network
    matrices = {"file": str(folder / "matrices.npz")} if network.attention else {"value": [[0.0] * d] * d}
    sections: dict[str, Any] = {
        "domain": {"manifold": "particles", "dimension": d},
        "sequence": {"length": float(n), "diffusion": diffusion, "ends": "periodic" if layer.periodic else "closed"},
        "attention": {"beta": layer.matrices.beta, "mask": "causal" if layer.causal else "none", **matrices},
        "stabilizers": {"layer_norm": network.layer_norm, "residual": network.residual, "gate": gate},
        "initial": {"kind": "tokens", "file": str(folder / "states.npy")},
        "time": {"method": "layers", "layers": len(layers), "step": step},
        "output": {"snapshots": len(layers), "samples": len(layers)},
    }
    if network.pattern is not None:
        sections["attention"]["pattern"] = msgspec.to_builtins(network.pattern)
    if network.feed_forward:
        own = layer.matrices
        arrays = {name: _array(getattr(own, name)).tolist() for name in ("inner", "bias", "outer")}
        sections["feed_forward"] = {"activation": network.activation, **arrays}
    return sections


def _array(tensor: Tensor) -> Floats:
    return np.asarray(tensor.detach().double().numpy())
