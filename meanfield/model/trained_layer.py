"""Layer of a trained Transformer: h ← h + attention + network with layer norm, biases, gains and positions.

    post       h ← N₁(h + A(h)) ,         h ← N₂(h + F(h))
    pre        h ← h + A(N₁(h)) ,         h ← h + F(N₂(h)) ,         and N₃ after the last layer
    sandwich   h ← h + N₁'(A(N₁(h))) ,    h ← h + N₂'(F(N₂(h))) ,    and N₃
    parallel   h ← h + A(N₁(h)) + F(N₂(h)) ,                         and N₃

    A(y)_i = b_O + Σ_h W_O,h Σ_j p_hij (W_V,h y_j + b_V,h)
    p_hij  = softmax_j c(β⟨R_i(W_Q,h y_i + b_Q,h), R_j(W_K,h y_j + b_K,h)⟩) ,   |i − j| < window; causal: j ≤ i
    F(y)   = W₂ σ(W₁y + b₁) + b₂ ,   gated: W₂(σ(W_G y) ∘ (W₁y + b₁)) + b₂ ,   experts: Σ_e r_e(y) F_e(y)
    N(y)   = g ∘ Cy/√(|Cy|²/d + ε) + b ,   C = I − 11ᵀ/d; RMS norm: C = I, b = 0

R_i rotates the first pairs of coordinates by angles i·ω (Su et al., 2104.09864), or is I where positions are in the
states before the first layer. The cap is c(z) = κ tanh(z/κ), or z without κ. The weights r of experts are a softmax
over the largest of their logits W_R y. Vaswani et al. (1706.03762); heads that share keys and values: Ainslie et al.
(2305.13245); experts: Jiang et al. (2401.04088).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from meanfield.model.feed_forward import ACTIVATIONS
from meanfield.model.trained_parts import PARTS
from solvers.mesh.mesh import Floats

Arrays = Mapping[str, Floats]
Rows = Iterator[tuple[slice, Floats]]  # blocks of rows of p
REQUIRED = ("query", "key", "value", "out", "inner", "outer")  # of every layer; biases, gains and the gate are optional
BIASES = ("query_bias", "key_bias", "value_bias", "out_bias", "inner_bias", "outer_bias", "gate_bias")
NORMS = ("attention", "network", "attention_after", "network_after", "final")
SHIFTS = tuple(f"{norm}_shift" for norm in NORMS)  # shifts b of layer norm
GAINS = (*(f"{norm}_gain" for norm in NORMS), "query_gain", "key_gain")
FLAGS = ("query_normalized", "key_normalized")  # present where RMS norm acts on queries, on keys
OF_LAYER = ("frequencies", "window", "attention_plain")  # properties that differ between the layers of a model
ARRAYS = (*REQUIRED, "gate", "router", *BIASES, *SHIFTS, *GAINS, *FLAGS, *OF_LAYER)
OF_NETWORK = ("inner", "outer", "gate", "inner_bias", "outer_bias", "gate_bias")
_CHUNK = 1 << 22  # maximum number of pairs of tokens at once


@dataclass(frozen=True)
class LayerForm:
    """Properties shared by all layers of a trained Transformer.

    beta           β of the attention weights, 1/√d_head in most models
    placement      position of layer norm: "post", after the sum with the residual; "pre", before attention and
                   network; "sandwich", before and after them; "parallel", before both, which act on the same states
    norm           "layer" or "rms"
    epsilon        ε > 0, added to the mean square that layer norm divides by
    activation     σ of the network: "gelu", "gelu_tanh", "relu", "silu" or "tanh"
    causal         whether token i attends to tokens j ≤ i only
    frequencies    ω of rotary positions, at most d_head/2, None for none; a layer can have others
    rotary_scale   factor of the rotated queries and keys
    cap            κ of the cap of logits, infinite for none
    experts        number of networks that a router selects for each token; 0 without a router
    """

    beta: float
    placement: str = "post"
    norm: str = "layer"
    epsilon: float = 1e-12
    activation: str = "gelu"
    causal: bool = False
    frequencies: Floats | None = None
    rotary_scale: float = 1.0
    cap: float = np.inf
    experts: int = 0

    def __post_init__(self) -> None:
        for name, value, table in (
            ("placement", self.placement, ("post", "pre", "sandwich", "parallel")),
            ("norm", self.norm, ("layer", "rms")),
            ("activation", self.activation, tuple(TRAINED_ACTIVATIONS)),
        ):
            if value not in table:
                raise ValueError(f"{name} = {value!r}: expected one of {', '.join(table)}")


class TrainedLayer:
    """Layer of a trained Transformer as a map of hidden states: ``layer(states)`` (n, d) → (n, d).

    A is attention, F the network, N a layer norm x ↦ g ∘ Cx/√(|Cx|²/d + ε) + b, and N₃ the norm after the last layer.

    form      properties of the model
    arrays    by name: query, key, value (heads, d_head, d), where the number of heads of key and value divides that of
              query; out (heads, d, d_head), inner (width, d), outer (d, width); biases, gains and gate where present;
              inner, outer and gate have a leading axis of experts beside router (experts, d); window (), frequencies;
              attention_plain (), 1 where N₁ = I
    without   parts of PARTS that are left out: "biases" are all b, of layer norm too; "gains" all g; "residual" and
              "layer_norm" leave A and F alone, and N = I; "positions" are rotations; "final_norm" is N₃
    is_last   whether N₃ follows

    Raises ValueError for a part that is unknown, or arrays that are absent or do not fit.
    """

    def __init__(self, form: LayerForm, arrays: Arrays, without: Collection[str] = (), is_last: bool = False) -> None:
        for part in without:
            if part not in PARTS:
                raise ValueError(f"without = {part!r}: expected one of {', '.join(PARTS)}")
        self.form, self._without = form, frozenset(without)
        left_out = (BIASES + SHIFTS if "biases" in without else ()) + (GAINS if "gains" in without else ())
        self._arrays = {name: array for name, array in arrays.items() if name not in left_out}
        self._final = is_last and "final_norm" not in without and any(name in arrays for name in _FINAL)
        _check_shapes(arrays)
        pairs, frequencies = arrays["query"].shape[1] // 2, arrays.get("frequencies", form.frequencies)
        if frequencies is not None and (frequencies.ndim != 1 or len(frequencies) > pairs):
            raise ValueError(f"frequencies have shape {frequencies.shape}: expected ({pairs},), or fewer")
        self._frequencies = frequencies
        self._plain = ("attention",) if arrays.get("attention_plain", np.zeros(())) > 0 else ()  # norms that are I

    def __call__(self, states: Floats) -> Floats:
        parts = [part for part in ("attention", "network") if part not in self._without]
        if self.form.placement == "parallel":
            states = self._residual(states) + sum(self.output(states, part) for part in parts)
        elif self.form.placement == "post":
            for part in ("attention", "network"):  # the layer norm of a part that is left out stays
                moved = self._residual(states) + self.output(states, part) if part in parts else states
                states = self.normalized(moved, part)
        else:
            for part in parts:
                states = self._residual(states) + self.output(states, part)
        return self.normalized(states, "final") if self._final else states

    def _residual(self, states: Floats) -> Floats:
        """Return the states (n, d) that the residual connection passes on: 0 if it is omitted."""
        return np.zeros_like(states) if "residual" in self._without else states

    def output(self, states: Floats, part: str) -> Floats:
        """Return the term (n, d) that attention or the network, by ``part``, adds to hidden states (n, d)."""
        branch: Callable[[Floats], Floats] = {"attention": self.attention, "network": self.network}[part]
        output = branch(states if self.form.placement == "post" else self.normalized(states, part))
        return self.normalized(output, f"{part}_after") if self.form.placement == "sandwich" else output

    def attention(self, points: Floats) -> Floats:
        """Return the output (n, d) of self-attention among tokens at points y (n, d), the argument of the attention."""
        output = np.zeros_like(points)
        for weights, value, out in self._heads(points):
            for rows, part in weights:
                output[rows] += part @ value @ out.T
        return output + self._arrays.get("out_bias", 0.0)

    def network(self, points: Floats) -> Floats:
        """Return the output (n, d) of the feed-forward network at points y (n, d)."""
        arrays = {name: self._arrays[name] for name in OF_NETWORK if name in self._arrays}
        if "router" not in self._arrays:
            return self._perceptron(points, arrays)
        output = np.zeros_like(points)
        for expert, shares in enumerate(self._routing(points).T):
            rows = shares > 0
            of_expert = {name: array[expert] for name, array in arrays.items()}
            output[rows] += shares[rows, None] * self._perceptron(points[rows], of_expert)
        return output

    def _routing(self, points: Floats) -> Floats:
        """Return the weights r (n, experts) of the experts at points y (n, d), 0 for those that are not selected."""
        logits = points @ self._arrays["router"].T
        selected = np.argsort(logits, axis=1)[:, -self.form.experts :]
        largest = np.take_along_axis(logits, selected, axis=1)
        weights = np.exp(largest - largest.max(axis=1, keepdims=True))
        shares = np.zeros_like(logits)
        np.put_along_axis(shares, selected, weights / weights.sum(axis=1, keepdims=True), axis=1)
        return shares

    def _perceptron(self, points: Floats, arrays: Arrays) -> Floats:
        """Return the output (n, d) of one network with the given arrays at points y (n, d)."""
        activation = TRAINED_ACTIVATIONS[self.form.activation]
        inner = points @ arrays["inner"].T + arrays.get("inner_bias", 0.0)
        if "gate" in arrays:
            inner = activation(points @ arrays["gate"].T + arrays.get("gate_bias", 0.0)) * inner
        else:
            inner = activation(inner)
        return inner @ arrays["outer"].T + arrays.get("outer_bias", 0.0)

    def _heads(self, points: Floats) -> Iterator[tuple[Rows, Floats, Floats]]:
        """Yield for each head its attention weights, values W_V y + b_V (n, d_head), and output matrix W_O (d, d_head).

        The attention weights of the tokens at points y (n, d) are an iterator over blocks of rows.
        """
        arrays, n = self._arrays, len(points)
        shared = len(arrays["query"]) // len(arrays["key"])
        for h in range(len(arrays["query"])):
            query = self._rotated(self._projected(points, "query", h))
            key = self._rotated(self._projected(points, "key", h // shared))
            value = self._projected(points, "value", h // shared)
            yield self._softmax(query, key, n), value, arrays["out"][h]

    def _softmax(self, query: Floats, key: Floats, n: int) -> Rows:
        """Yield the attention weights of queries and keys (n, d_head) in blocks: a slice, and its rows (rows, n).

        A block has at most _CHUNK pairs of tokens, or one row.
        """
        count, window = max(_CHUNK // n, 1), float(self._arrays.get("window", np.inf))
        for start in range(0, n, count):
            rows = slice(start, min(start + count, n))
            logits = self.form.beta * (query[rows] @ key.T)
            if self.form.cap < np.inf:
                logits = self.form.cap * np.tanh(logits / self.form.cap)
            if self.form.causal or window < n:
                steps = np.arange(rows.start, rows.stop)[:, None] - np.arange(n)
                logits[np.abs(steps) >= window] = -np.inf
                logits[steps < (0 if self.form.causal else -n)] = -np.inf
            logits -= logits.max(axis=1, keepdims=True)
            np.exp(logits, out=logits)
            logits /= logits.sum(axis=1, keepdims=True)
            yield rows, logits

    def _projected(self, points: Floats, name: str, head: int) -> Floats:
        """Return the queries, keys or values W y + b (n, d_head) of one head at points y (n, d), by ``name``.

        RMS norm and gain are applied where the model has them.
        """
        arrays = self._arrays
        projected: Floats = points @ arrays[name][head].T
        if f"{name}_bias" in arrays:
            projected = projected + arrays[f"{name}_bias"][head]
        if f"{name}_normalized" in arrays:  # queries and keys have length √d_head
            projected = arrays.get(f"{name}_gain", 1.0) * projected / _rms(projected, self.form.epsilon)
        return projected

    def _rotated(self, vectors: Floats) -> Floats:
        """Return queries or keys (n, d_head) rotated by the rotary positions, unchanged without such positions."""
        if self._frequencies is None or "positions" in self._without:
            return vectors
        angles = np.arange(len(vectors))[:, None] * self._frequencies
        cosine, sine = (self.form.rotary_scale * f(angles) for f in (np.cos, np.sin))
        pairs = angles.shape[1]
        first, second, rest = np.split(vectors, [pairs, 2 * pairs], axis=1)
        return np.hstack([first * cosine - second * sine, second * cosine + first * sine, rest])

    def normalized(self, states: Floats, name: str) -> Floats:
        """Return hidden states (n, d) after the layer norm with the given name, one of NORMS."""
        if "layer_norm" in self._without or name in self._plain:
            return states
        if self.form.norm == "layer":
            states = states - states.mean(axis=1, keepdims=True)
        gain, shift = self._arrays.get(f"{name}_gain", 1.0), self._arrays.get(f"{name}_shift", 0.0)
        return gain * (states / _rms(states, self.form.epsilon)) + shift


def _rms(vectors: Floats, epsilon: float) -> Floats:
    """Return the root mean square √(|v|²/d + ε) (n, 1) of each vector v (n, d), with ε = ``epsilon``."""
    return np.asarray(np.sqrt((vectors**2).mean(axis=1, keepdims=True) + epsilon))


def _check_shapes(arrays: Arrays) -> None:
    """Raise ValueError if an array of a trained layer is absent or has a wrong shape."""
    absent = [name for name in REQUIRED if name not in arrays]
    if absent:
        raise ValueError(f"{absent[0]}: absent; expected arrays {', '.join(REQUIRED)}")
    heads, size, d = arrays["query"].shape
    groups = next(iter(arrays["key"].shape), 0)
    experts = arrays["router"].shape[:1] if "router" in arrays else ()
    width = next(iter(arrays["inner"].shape[len(experts) :]), 0)
    network = {
        "inner": (width, d), "outer": (d, width), "gate": (width, d), "inner_bias": (width,), "gate_bias": (width,),
        "outer_bias": (d,),
    }  # fmt: skip
    expected = {
        "key": (groups, size, d), "value": (groups, size, d), "out": (heads, d, size), "query_bias": (heads, size),
        "key_bias": (groups, size), "value_bias": (groups, size), "out_bias": (d,), "query_gain": (size,),
        "key_gain": (size,), "router": (*experts, d), "window": (), "attention_plain": (),
        **{name: (*experts, *shape) for name, shape in network.items()},
        **{f"{norm}_{what}": (d,) for norm in NORMS for what in ("gain", "shift")},
    }  # fmt: skip
    for name, shape in expected.items():
        if name in arrays and arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape}: expected {shape}")
    if not groups or heads % groups:
        raise ValueError(f"query has {heads} heads, key {groups}: expected a divisor of {heads}")


def _gelu_tanh(x: Floats) -> Floats:
    """Return GELU in its approximation by tanh."""
    values: Floats = 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))
    return values


def _silu(x: Floats) -> Floats:
    """Return x/(1 + e^{−x})."""
    from scipy.special import expit

    values: Floats = x * expit(x)
    return values


_FINAL = ("final_gain", "final_shift")
TRAINED_ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {**ACTIVATIONS, "gelu_tanh": _gelu_tanh, "silu": _silu}
