"""Layers of a case computed by PyTorch's own attention: an independent reference for this package.

    x ← N(αx + Δt (Σ_h w_h V_h scaled_dot_product_attention(βQ_h y, K_h y, y) + W σ(Uy + b))/s)

y = x/|x|, or x without layer norm; masses enter as a bias log m of the attention, a causal mask as −∞; α = 1 − γΔt, or
0 without the residual; s and N by the layer norm, see meanfield/model/layer_norm.py. Where N has nothing to normalize,
a token does not move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import refusal
from meanfield.domains.common.model_of_case import heads_by_interval, network_of
from meanfield.model.discrete_layers import LayerIntegrator
from meanfield.model.heads import Head, matrix_of
from meanfield.model.layer_norm import NEGLIGIBLE
from meanfield.results.result import Result
from meanfield.results.runs import CaseSource, load_case
from meanfield.running import Printer, print_nothing
from meanfield.runtime.paths import require_files
from meanfield.sections.attention import FeedForward
from meanfield.simulation import set_up
from meanfield.transformer.loading import require_torch
from meanfield.transformer.reading import require_used, run_prepared
from solvers.io.layout import Points
from solvers.mesh.mesh import Floats
from solvers.timestepping.integrate import fixed


def reference(
    case: CaseSource,
    path: str | Path | None = None,
    *,
    overwrite: bool = False,
    progress: bool | None = None,
    show: Printer = print_nothing,
    command: str = "",
) -> Result:
    """Run a case of particles in layers by PyTorch's attention, an independent reference for ``meanfield.run``.

    Parameters
    ----------
    case : Case, str, Path or mapping
        Case of particles with ``time.method = "layers"``, as :func:`~meanfield.load_case` takes it.
    path : str or Path, optional
        File to be written; None: the result is in memory.
    overwrite : bool
        Whether an existing file is replaced.
    progress : bool, optional
        Whether progress is shown, see :func:`~meanfield.transformer.read`.
    show : function (line)
        Function that prints a line, see :func:`~meanfield.transformer.read`.
    command : str
        Attribute ``command`` of a file: how the file was made. Only with a ``path``.

    Returns
    -------
    Result
        The run, in the file or in memory; a file of it cannot be resumed.

    Raises
    ------
    CaseError
        If PyTorch is missing, or the case is not valid or has a key that PyTorch's attention does not support.
    FileError
        If the file exists and ``overwrite`` is false, or if it cannot be written.
    NonFinite
        If a state becomes non-finite.

    References
    ----------
    Vaswani et al., arXiv:1706.03762, section 3.2.

    Examples
    --------
    >>> import meanfield as mf
    >>> layers = {"method": "layers", "layers": 10, "step": 0.1}
    >>> case = mf.load_case("tokens_equiangular", {"time": layers, "output": {"snapshots": 10}})
    >>> result = mf.simulate(case)
    >>> by_torch = mf.transformer.reference(case)  # doctest: +SKIP
    >>> bool(abs(by_torch.position[-1] - result.position[-1]).max() < 1e-14)  # doctest: +SKIP
    True
    """
    require_used(path, show, command)
    case = load_case(case)
    require_files(case, None if path is None else str(path))
    _check(case)
    torch = require_torch()
    problem = set_up(case)
    assert isinstance(problem.space, Points)  # _check accepts particles only
    attributes = problem.attributes | {"layers_of": f"torch {torch.__version__}"}  # marks a file that cannot be resumed
    layers = TorchLayers(case, problem.space.weights)
    problem = replace(
        problem, dynamics=fixed(LayerIntegrator(layers)), prepare=lambda state: None, attributes=attributes
    )
    return run_prepared(case, problem, path, overwrite, progress, show=show, command=command)


class TorchLayers:
    """Layers of a case computed by PyTorch: ``layers(time, positions)`` returns the positions (n, d) after a layer.

    ``masses`` (n,) are those of the tokens. Arithmetic is in float64.
    """

    def __init__(self, case: Case, masses: Floats) -> None:
        import torch

        self._case, self._heads = case, heads_by_interval(case)
        self._step, stabilizers = case.time.step or 1.0, case.stabilizers
        self._alpha = 1.0 - self._step * stabilizers.gate if stabilizers.residual else 0.0
        self.duration = self._step if stabilizers.residual else 1.0
        bias = torch.log(torch.tensor(masses)).expand(len(masses), -1)
        if case.attention.mask == "causal":
            bias = bias.masked_fill(torch.ones(len(masses), len(masses)).triu(1).bool(), -torch.inf)
        self._bias = bias

    def __call__(self, time: float, positions: Floats) -> Floats:
        import torch

        x, name = torch.from_numpy(positions), self._case.stabilizers.layer_norm
        length = x.norm(dim=1, keepdim=True)
        seen = x if name == "none" else x / length
        output = self._attention(self._heads.of_interval(round(time / self.duration)), seen) + self._network(seen)
        speed_scale, keeps_radius = LAYER_NORMS[name]
        moved = self._alpha * x + self._step * output / speed_scale(self._case, time, output)
        if keeps_radius:
            size = moved.norm(dim=1, keepdim=True)
            moved = torch.where(size > NEGLIGIBLE * length, moved * (length / size), x)
        return np.asarray(moved.numpy())

    def _attention(self, heads: list[Head], y: Any) -> Any:
        """Return the output Σ_h w_h V_h A_h (n, d) of the attention heads for tokens y (n, d), computed by PyTorch.

        A_h = Σ_j softmax_j(β⟨Q_h y_i, K_h y_j⟩ + log m_j) y_j, for tokens of masses m_j and heads of weights w_h.
        """
        import torch

        n, d = y.shape
        query, key = (
            torch.from_numpy(np.stack([matrix_of(getattr(head, name), d) for head in heads]))
            for name in ("query", "key")
        )
        value = torch.from_numpy(np.stack([head.value_matrix(d) for head in heads]))
        found = torch.nn.functional.scaled_dot_product_attention(
            y @ query.mT, y @ key.mT, y.expand(len(heads), n, d), self._bias, scale=self._case.beta_of_heads
        )
        weights = torch.tensor([head.weight for head in heads], dtype=torch.float64)
        return torch.einsum("h,hde,hne->nd", weights, value, found)

    def _network(self, y: Any) -> Any:
        """Return the output W σ(Uy + b) (n, d) of the feed-forward network for tokens y (n, d), 0 without a network.

        On a sphere of radius g the network acts on gy, and the output is divided by g.
        """
        import torch

        network: Any = network_of(self._case)
        size = self._case.stabilizers.scale
        if network is None:
            return torch.zeros_like(y)
        inner, bias, outer = (torch.from_numpy(array) for array in (network.inner, network.bias, network.outer))
        activation = getattr(torch.nn.functional, network.activation)
        return activation(size * y @ inner.T + bias) @ outer.T / size


def _check(case: Case) -> None:
    """Raise CaseError, with the name of the key, for options that PyTorch's layers do not support."""
    attention, norm, network = case.attention, case.stabilizers.layer_norm, case.feed_forward
    for key, value, expected, is_known in (
        ("domain.manifold", case.domain.manifold, '"particles"', case.domain.has_tokens),
        ("time.method", case.time.method, '"layers"', case.time.method == "layers"),
        ("attention.normalization", attention.normalization, '"softmax"', attention.normalization == "softmax"),
        ("attention.kernel", attention.kernel, '"exponential"', attention.kernel == "exponential"),
        ("stabilizers.layer_norm", norm, f"one of {', '.join(LAYER_NORMS)}", norm in LAYER_NORMS),
        ("feed_forward.field", getattr(network, "activation", None), "a network", isinstance(network, KNOWN_NETWORKS)),
        ("attention.pattern.local", getattr(attention.pattern, "local", None), "no pattern", not attention.pattern),
        ("sequence.diffusion", getattr(case.sequence, "diffusion", None), "no section [sequence]", not case.sequence),
    ):
        if not is_known:
            raise refusal(key, value, f"{expected} for torch's attention")


KNOWN_NETWORKS = (FeedForward, type(None))
SpeedScale = Callable[[Case, float, Any], Any]
# s of (case, time, A + F) at radius 1, and whether the radius is kept
LAYER_NORMS: dict[str, tuple[SpeedScale, bool]] = {
    "post": (lambda case, time, output: 1.0, True),
    "ngpt": (lambda case, time, output: output.norm(dim=1, keepdim=True) / case.stabilizers.alpha, True),
    "cod": (lambda case, time, output: (time + 1.0) ** 0.5, True),
    "pre": (lambda case, time, output: 1.0, False),
    "peri": (lambda case, time, output: output.norm(dim=1, keepdim=True), False),
    "none": (lambda case, time, output: 1.0, False),
}
