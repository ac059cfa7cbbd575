"""PDE network: the representation field ∂ₜu = κLu + αA(u) + F(u) − γu in layers of a step τ.

    u ← N((1 − γτ)u + τ(α Σ_h V_h Σ_j softmax_j(β⟨Q_h y_i, K_h y_j⟩) y_j + W σ(Uy + b))/s) ,     u ← e^{τκL} u

L is the three-point Laplacian of tokens at unit distance, closed or periodic; V_h = O_h W_h. By layer norm, as in
meanfield/model/layer_norm.py: post, y = u on the unit sphere, N y = y/|y|, and diffusion on the sphere; pre, y = u/|u|,
N = 1; peri, like pre with s = |A + F|; none, y = u, N = 1. Without the residual (1 − γτ)u is omitted.
Training applies dropout to (α Σ … + W σ)/s.

A domain ``particles`` with a section [sequence] has the same layers: tests/support/field_case.py.

The form is that of Zhang and Zhou (2408.09523), from the abstract of the paper. A third party's replication prints
u ← u + τ_k(D_k Lu + MLP(u) + MHA(u)) with learned τ_k and D_k: the same terms with periodic ends, except for an
explicit step of diffusion and biases of attention.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from meanfield.domains.particles.sequence import MAX_ROTATION
from meanfield.model.layer_norm import NEGLIGIBLE
from meanfield.transformer.networks.attending import attend, pattern_of
from meanfield.transformer.networks.section import Network, Pde
from meanfield.transformer.networks.standard import ACTIVATIONS

COEFFICIENTS = ("step", "attention_weight", "diffusion", "gate")
NOT_NEGATIVE = ("step", "diffusion", "gate")


class Matrices(nn.Module):
    """Random matrices of a PDE network's layer: attention Q_h, K_h, O_h W_h for each head h, and network W σ(Uy + b).

    Q_h, K_h, W_h (heads, d_h, d), O_h (heads, d, d_h), U (width, d), b (width) and W (d, width). The random values make
    logits, |A| and |F| of order 1 for states of length 1; β = d/√d_h, as for states of length √d.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        d, heads, width = network.dimension, network.heads, network.width
        self.beta = d / math.sqrt(d // heads)
        if network.attention:
            self.query, self.key, self.value = (_normal(d**-0.5, heads, d // heads, d) for _ in range(3))
            self.output = _normal(d**-0.5, heads, d, d // heads)
        if network.feed_forward:
            self.inner, self.bias = _normal(1.0, width, d), _normal(0.0, width)
            self.outer = _normal((d * width) ** -0.5, d, width)


class FieldLayer(nn.Module):
    """Layer of the PDE network: maps states (batch, n, d) to new states and attention weights (batch, heads, n, n).

    The weights are None without ``maps``, without attention, or if its pattern is sparse.
    """

    def __init__(self, network: Network, pde: Pde, causal: bool, matrices: Matrices) -> None:
        super().__init__()
        self.network, self.causal, self.matrices = network, causal, matrices
        self.periodic = pde.ends == "periodic"
        self.dropout = nn.Dropout(network.dropout)
        self.pattern = pattern_of(network, causal, self.periodic)
        self.coefficients = nn.ParameterDict(
            {name: nn.Parameter(torch.tensor(getattr(pde, name), dtype=torch.float64)) for name in COEFFICIENTS}
        ).requires_grad_(pde.coefficients == "learned")
        self.diffuses = pde.diffusion > 0 or pde.coefficients == "learned"

    def forward(self, u: Tensor, maps: bool = False) -> tuple[Tensor, Tensor | None]:
        step, diffusion, gate = (self.coefficient(name) for name in NOT_NEGATIVE)
        output, weights = self._output(u, maps)
        if self.network.layer_norm == "peri":
            output = normalize(output, dim=-1, eps=NEGLIGIBLE)
        moved = step * self.dropout(output)
        if self.network.residual:
            moved = moved + (1 - (0.0 if self.on_sphere else gate) * step) * u
        if self.on_sphere:
            moved = normalize(moved, dim=-1, eps=NEGLIGIBLE)
        if self.diffuses:
            moved = self._diffused(moved, diffusion, step)
        return moved, weights

    @property
    def on_sphere(self) -> bool:
        """Return whether layer norm keeps all states u on the unit sphere, |u| = 1."""
        return self.network.layer_norm == "post"

    def coefficient(self, name: str) -> Tensor:
        """Return a coefficient of the layer by name: step τ, attention_weight α, diffusion κ or gate γ.

        A learned τ, κ or γ that has become negative is replaced by 0.
        """
        value: Tensor = self.coefficients[name]
        return value.clamp(min=0.0) if name in NOT_NEGATIVE else value

    def _output(self, u: Tensor, maps: bool) -> tuple[Tensor, Tensor | None]:
        """Return αA + F (batch, n, d) and the attention weights of states u (batch, n, d).

        A is the attention with its factor α, F the feed-forward network. The weights (batch, heads, n, n) are None
        without ``maps``, without attention, or if its pattern is sparse.
        """
        matrices, weights = self.matrices, None
        y = u if self.network.layer_norm == "none" else normalize(u, dim=-1, eps=NEGLIGIBLE)
        output = torch.zeros_like(u)
        if self.network.attention:
            query, key, value = (
                torch.einsum("hed,bnd->bhne", m, y) for m in (matrices.query, matrices.key, matrices.value)
            )
            found, weights = attend(query, key, value, matrices.beta, self.causal, self.pattern, maps)
            output = self.coefficient("attention_weight") * torch.einsum("hde,bhne->bnd", matrices.output, found)
        if self.network.feed_forward:
            hidden: Tensor = ACTIVATIONS[self.network.activation](y @ matrices.inner.T + matrices.bias)
            output = output + hidden @ matrices.outer.T
        return output, weights

    def _diffused(self, u: Tensor, diffusion: Tensor, step: Tensor) -> Tensor:
        """Return e^{τκL}u, the states u (batch, n, d) after diffusion along the tokens in one step.

        L is the three-point Laplacian, κ the ``diffusion``, τ the ``step``.

        On the sphere the step is divided into substeps so short that each rotates states by little, as in
        SequenceDiffusion.
        """
        if not self.on_sphere:
            return diffuse(u, diffusion * step, self.periodic)
        left = 1.0  # remaining fraction of the step
        while left > 0:
            part = left / max(math.ceil(left * _rotation_rate(u, diffusion * step, self.periodic) / MAX_ROTATION), 1)
            u = _diffuse_on_sphere(u, part * diffusion * step, self.periodic)
            left = left - part if part < left else 0.0
        return u


def identity_layer(beta: float, step: float, **network: Any) -> FieldLayer:
    """Return a layer of the PDE network with attention alone and Q = K = V = I in R², in float64.

    ``network`` are further keys of the section [network] of a training file.
    """
    section = Network(kind="pde", dimension=2, heads=1, feed_forward=False, **network)
    layer = FieldLayer(section, Pde(step=step), False, Matrices(section)).double()
    with torch.no_grad():
        for matrix in layer.matrices.parameters():
            matrix.copy_(torch.eye(2))
    layer.matrices.beta = beta
    return layer


class FieldNetwork(nn.Module):
    """PDE network: its layers, and the scaling of states (batch, n, d) before the first layer and after the last."""

    def __init__(self, network: Network, pde: Pde, causal: bool) -> None:
        super().__init__()
        first = Matrices(network)
        self.layers = nn.ModuleList(
            FieldLayer(network, pde, causal, first if pde.shared or k == 0 else Matrices(network))
            for k in range(network.layers)
        )
        self.last = nn.Identity()
        self.on_sphere, self.scale = network.layer_norm == "post", math.sqrt(network.dimension)

    def begin(self, embeddings: Tensor) -> Tensor:
        """Return the states before the first layer: embeddings normalized, or divided by √d for free lengths."""
        return normalize(embeddings, dim=-1) if self.on_sphere else embeddings / self.scale

    def end(self, states: Tensor) -> Tensor:
        """Return √d u, the input of the output head, for the states u (batch, n, d) after the last layer."""
        return self.scale * states


def diffuse(u: Tensor, time: Tensor, periodic: bool = False) -> Tensor:
    """Return e^{tL} u, the exact diffusion of u (batch, n, d) along its n tokens for a time t, L the Laplacian.

    L is the three-point Laplacian at unit distance.

    The eigenvectors of L are cos(πm(i + ½)/n) for closed ends, and e^{2πimk/n} for periodic ends.
    """
    n = u.shape[1]
    if periodic:
        waves = 2 * (math.pi / n * torch.arange(n // 2 + 1, dtype=u.dtype, device=u.device)).sin()
        decay = torch.exp(-time * waves**2)[:, None]
        spread_field: Tensor = torch.fft.irfft(torch.fft.rfft(u, dim=1) * decay, n=n, dim=1)
        return spread_field
    mode = torch.arange(n, dtype=u.dtype, device=u.device)
    basis = (math.pi / n * (mode[:, None] + 0.5) * mode).cos() * math.sqrt(2 / n)
    basis[:, 0] /= math.sqrt(2)
    decay = torch.exp(-time * (2 * (math.pi / (2 * n) * mode).sin()) ** 2)
    return basis @ (decay[:, None] * (basis.T @ u))


def _diffuse_on_sphere(u: Tensor, time: Tensor, periodic: bool) -> Tensor:
    """Return N e^{tL} u, the states u (batch, n, d) on the sphere after diffusion along the tokens for a time t.

    L is the three-point Laplacian and N y = y/|y|. The accuracy in time is of second order, by Richardson
    extrapolation.
    """
    half = normalize(diffuse(u, time / 2, periodic), dim=-1)
    halves = normalize(diffuse(half, time / 2, periodic), dim=-1)
    return normalize(2 * halves - normalize(diffuse(u, time, periodic), dim=-1), dim=-1)


def _rotation_rate(u: Tensor, time: Tensor, periodic: bool) -> float:
    """Return the largest t|u_{i+1} − u_i|² of neighboring tokens u_i on the sphere, where t is ``time``."""
    if u.shape[1] < 2:
        return 0.0
    u = torch.cat([u[:, -1:], u], dim=1) if periodic else u
    return float(time.detach() * (u.detach().diff(dim=1) ** 2).sum(dim=-1).max())


def _normal(deviation: float, *shape: int) -> nn.Parameter:
    """Return a trainable array with Gaussian entries of mean 0 and the given standard deviation."""
    return nn.Parameter(deviation * torch.randn(*shape))
