"""The two networks against torch.nn's modules and `meanfield run`, forward and backward."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy.linalg import expm  # noqa: E402
from support.field_case import field_case  # noqa: E402
from torch import nn  # noqa: E402

import meanfield as mf  # noqa: E402
from meanfield.model.pattern import TokenPattern  # noqa: E402
from meanfield.transformer.networks import attending  # noqa: E402
from meanfield.transformer.networks.attending import attend  # noqa: E402
from meanfield.transformer.networks.network import Shape, build, traced  # noqa: E402
from meanfield.transformer.networks.section import TrainingCase  # noqa: E402
from meanfield.transformer.networks.standard import rotated, sinusoidal  # noqa: E402

PIXELS = Shape(length=7, features=5, words=0, classes=3)
ROUNDING = {"float64": 1e-12, "float32": 1e-6}  # about 5000 and 10 units in the last place of numbers of order 1
NAMES = {  # names in torch.nn.TransformerEncoderLayer by names in this package
    "attention.output": "self_attn.out_proj", "feed_forward.inner": "linear1", "feed_forward.outer": "linear2",
    "norms.0": "norm1", "norms.1": "norm2",
}  # fmt: skip


def network_of(*overrides, shape=PIXELS):
    case = TrainingCase().replace(["network.dimension=8", "network.width=12", "network.layers=3", *overrides])
    return build(case, shape)


def inputs_of(network, batch=4):
    values = torch.from_numpy(np.random.default_rng(1).standard_normal((batch, PIXELS.length, PIXELS.features)))
    return values.to(network.head.weight.dtype)


def encoder_like(network, scheme, activation, dtype):
    """Return torch.nn's encoder with the weights of ``network``."""
    layer = nn.TransformerEncoderLayer(
        8, 4, 12, 0.0, getattr(nn.functional, activation), batch_first=True, norm_first=scheme == "pre", dtype=dtype
    )
    encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    for theirs, ours in zip(encoder.layers, network.body.layers, strict=True):
        state = ours.state_dict()
        packed = {
            kind: torch.cat([state[f"attention.{part}.{kind}"] for part in ("query", "key", "value")])
            for kind in ("weight", "bias")
        }
        named = {f"self_attn.in_proj_{kind}": array for kind, array in packed.items()}
        for mine, name in NAMES.items():
            named |= {f"{name}.{kind}": state[f"{mine}.{kind}"] for kind in ("weight", "bias")}
        theirs.load_state_dict(named)
    return encoder.train()  # training mode has no fused kernels


def gradients(output, states):
    """Return the gradient by the input states of a sum with fixed random weights."""
    weights = torch.from_numpy(np.random.default_rng(2).standard_normal(output.shape)).to(output.dtype)
    return torch.autograd.grad((weights * output).sum(), states, retain_graph=True)[0]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(("scheme", "activation", "causal"), [("pre", "gelu", False), ("post", "relu", True)])
def test_the_standard_layers_are_those_of_torch(scheme, activation, causal, precision):
    kind = "characters" if causal else "digits"
    network = network_of(
        f"network.layer_norm={scheme}", f"network.activation={activation}", f"data.kind={kind}",
        f"training.precision={precision}",
    )  # fmt: skip
    encoder = encoder_like(network, scheme, activation, getattr(torch, precision))
    states = network.embed(inputs_of(network)).detach().requires_grad_()
    mask = nn.Transformer.generate_square_subsequent_mask(7, dtype=states.dtype) if causal else None
    ours, theirs = network.pass_layers(states), encoder(states, mask=mask)
    assert torch.allclose(ours, theirs, rtol=0, atol=ROUNDING[precision])
    for mine, other in ((states, states), (network.body.layers[0].attention.query.weight, None)):
        found = gradients(ours, mine)
        given = gradients(theirs, states if other is not None else encoder.layers[0].self_attn.in_proj_weight)
        scale = given.abs().max()
        assert torch.allclose(found, given[: len(found)], rtol=0, atol=ROUNDING[precision] * max(scale, 1))


def test_peri_is_a_norm_before_and_after_each_part():
    network = network_of("network.layer_norm=peri", "training.precision=float64", "network.layers=1")
    layer, x = network.body.layers[0], network.embed(inputs_of(network))
    output, _ = layer.attention(layer.norms[0](x))
    x1 = x + nn.functional.layer_norm(output, (8,))  # gains are 1 and biases 0 before training
    expected = x1 + nn.functional.layer_norm(layer.feed_forward(nn.functional.layer_norm(x1, (8,))), (8,))
    assert torch.allclose(network.pass_layers(x), expected, rtol=0, atol=1e-12)


def test_without_the_residual_a_layer_is_its_last_part():
    network = network_of("network.layer_norm=none", "network.residual=false", "training.precision=float64")
    layer, x = network.body.layers[0], network.embed(inputs_of(network))
    assert torch.equal(layer(x)[0], layer.feed_forward(layer.attention(x)[0]))


def test_sinusoidal_positions_are_those_of_the_formula():
    d, n = 6, 9
    given = [[(np.sin, np.cos)[k % 2](i / 10000 ** (2 * (k // 2) / d)) for k in range(d)] for i in range(n)]
    assert np.abs(sinusoidal(n, d).numpy() - given).max() < 1e-14


def test_rotary_positions_are_llamas_and_depend_on_the_offset_alone():
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    x, y = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 1, 9, 6)))
    angles = torch.arange(9)[:, None] / 10000 ** (torch.arange(0, 6, 2, dtype=torch.float64) / 6)
    both = torch.cat([angles, angles], dim=-1)[None]
    theirs, _ = llama.apply_rotary_pos_emb(x[None], x[None], both.cos(), both.sin())
    assert torch.allclose(rotated(x), theirs[0], rtol=0, atol=1e-14)
    same = rotated(x[:, :1].expand(1, 9, 6)) @ rotated(y[:, :1].expand(1, 9, 6)).mT
    assert torch.allclose(same[0, 0, 3], same[0, 5, 8], rtol=0, atol=1e-13)
    assert abs(same[0, 0, 3] - same[0, 0, 4]) > 1e-3


def positions_of(n, d):
    """Return sinusoidal positions (n, d) by their formula."""
    k = np.arange(d)
    angles = np.arange(n)[:, None] * 10000.0 ** (-(k - k % 2) / d)
    return np.where(k % 2 == 0, np.sin(angles), np.cos(angles))


def laplacian_of(n):
    """Return the three-point Laplacian of n points, closed at both ends."""
    laplacian = np.eye(n, k=1) + np.eye(n, k=-1)
    return laplacian - np.diag(laplacian.sum(axis=1))


@pytest.mark.parametrize("scheme", ["pre", "none"])
def test_the_pde_network_has_the_constants_of_its_case_in_float64(scheme):
    """Layers of the network agree with NumPy for τ, α, κ, γ and positions of the case, up to rounding in three
    layers, 1e-13."""
    step, weight, diffusion, gate = 0.1, 0.7, 0.3, 0.2
    network = network_of(
        "network.kind=pde", f"network.layer_norm={scheme}", "network.positions=sinusoidal", "network.activation=tanh",
        f"pde.step={step}", f"pde.attention_weight={weight}", f"pde.diffusion={diffusion}", f"pde.gate={gate}",
        "training.precision=float64",
    )  # fmt: skip
    inputs = inputs_of(network)
    arrays = {name: array.numpy() for name, array in network.state_dict().items()}
    heat = expm(step * diffusion * laplacian_of(PIXELS.length))
    u = inputs.numpy() @ arrays["embedding.weight"].T + arrays["embedding.bias"] + positions_of(PIXELS.length, 8)
    u = u / np.sqrt(8)
    for k in range(3):
        own = {name: arrays[f"body.layers.{k}.matrices.{name}"] for name in ("query", "key", "value", "output")}
        inner, bias, outer = (arrays[f"body.layers.{k}.matrices.{name}"] for name in ("inner", "bias", "outer"))
        y = u / np.linalg.norm(u, axis=-1, keepdims=True) if scheme == "pre" else u
        rate = np.tanh(y @ inner.T + bias) @ outer.T
        for h in range(4):
            logits = 8 / np.sqrt(2) * (y @ own["query"][h].T) @ (y @ own["key"][h].T).swapaxes(1, 2)
            attention = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
            rate += weight * attention @ y @ own["value"][h].T @ own["output"][h].T
        u = heat @ ((1 - gate * step) * u + step * rate)
    expected = (np.sqrt(8) * u).mean(axis=1) @ arrays["head.weight"].T + arrays["head.bias"]
    assert np.abs(network(inputs).detach().numpy() - expected).max() < 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    ("kind", "positions"),
    [(kind, positions) for kind in ("transformer", "pde") for positions in ("none", "sinusoidal", "learned")]
    + [("transformer", "rotary")],
)
def test_everything_of_a_network_has_its_precision(kind, positions, precision):
    """Parameters and buffers have the network's precision, and constants are those of the case rounded once."""
    constants = {"step": 0.1, "attention_weight": 0.7, "diffusion": 0.3, "gate": 0.2}
    network = network_of(
        f"network.kind={kind}", f"network.positions={positions}", f"training.precision={precision}",
        *(f"pde.{name}={value}" for name, value in constants.items() if kind == "pde"), "network.layer_norm=pre",
    )  # fmt: skip
    tensors, rounded = [*network.parameters(), *network.buffers()], np.dtype(precision).type
    assert {tensor.dtype for tensor in tensors} == {getattr(torch, precision)}
    if positions == "sinusoidal":
        error = network.positions.detach().numpy() - positions_of(PIXELS.length, 8).astype(rounded)
        assert np.abs(error).max() <= np.finfo(rounded).eps
    for layer in network.body.layers if kind == "pde" else ():
        found = {name: layer.coefficients[name].item() for name in constants}
        assert found == {name: rounded(value) for name, value in constants.items()}


FIELDS = [
    ("post", True, 0.3, 0.0, "digits"),
    ("post", False, 0.0, 0.0, "digits"),
    ("pre", True, 0.1, 0.2, "digits"),
    ("peri", True, 0.1, 0.0, "digits"),
    ("none", True, 0.2, 0.1, "digits"),
    ("none", False, 0.0, 0.0, "digits"),
    ("post", True, 0.0, 0.0, "characters"),
]


@pytest.mark.parametrize("ends", ["closed", "periodic"])
@pytest.mark.parametrize(("scheme", "residual", "diffusion", "gate", "data"), FIELDS)
def test_layers_of_the_pde_network_are_those_that_run_solves(scheme, residual, diffusion, gate, data, ends, tmp_path):
    network = network_of(
        "network.kind=pde", f"network.layer_norm={scheme}", f"network.residual={str(residual).lower()}",
        f"pde.diffusion={diffusion}", f"pde.gate={gate}", f"data.kind={data}", "pde.shared=true", f"pde.ends={ends}",
        "training.precision=float64",
    )  # fmt: skip
    _, trace = traced(network, inputs_of(network, batch=1))
    case = field_case(network, trace.states[0][0].numpy(), tmp_path)
    solved = mf.simulate(case).position
    for k in range(1, 4):
        assert np.abs(solved[k] - trace.states[k][0].numpy()).max() < 1e-12, k


SPARSE = ["network.pattern.local=1", "network.pattern.global_tokens=1", "network.pattern.random_tokens=1"]


@pytest.mark.parametrize("data", ["digits", "characters"])
@pytest.mark.parametrize("kind", ["transformer", "pde"])
def test_sparse_attention_is_dense_attention_with_the_same_mask(kind, data, monkeypatch):
    """Sparse and dense attention agree in states and gradients."""
    monkeypatch.setattr(attending, "MIN_SPARSE", 0)
    monkeypatch.setattr(attending, "MIN_SPARSE_RATIO", 0)
    network = network_of(*SPARSE, f"network.kind={kind}", f"data.kind={data}", "training.precision=float64")
    states = network.embed(inputs_of(network)).detach().requires_grad_()
    sparse = network.pass_layers(states)
    mine = gradients(sparse, states)

    def dense(query, key, value, beta, causal, pattern, maps):
        seen = torch.from_numpy(pattern.mask(query.shape[-2]))
        assert not seen.all()
        return nn.functional.scaled_dot_product_attention(query, key, value, seen, scale=beta), None

    module = "standard" if kind == "transformer" else "field"
    monkeypatch.setattr(f"meanfield.transformer.networks.{module}.attend", dense)
    expected = network.pass_layers(states)
    assert torch.allclose(sparse, expected, rtol=0, atol=1e-12)
    assert torch.allclose(mine, gradients(expected, states), rtol=0, atol=1e-12)


@pytest.mark.parametrize("data", ["digits", "characters"])
def test_layers_with_a_sparse_pattern_are_those_that_run_solves(data, tmp_path):
    network = network_of(*SPARSE, "network.kind=pde", "network.layer_norm=post", f"data.kind={data}", "pde.shared=true",
                         "pde.ends=periodic", "training.precision=float64")  # fmt: skip
    _, trace = traced(network, inputs_of(network, batch=1))
    solved = mf.simulate(field_case(network, trace.states[0][0].numpy(), tmp_path)).position
    assert np.abs(solved[-1] - trace.states[-1][0].numpy()).max() < 1e-12


@pytest.mark.parametrize("causal", [False, True])
def test_attention_without_maps_is_attention_with_maps(causal):
    random = torch.Generator().manual_seed(0)
    parts = [torch.randn(2, 3, 40, 8, dtype=torch.float64, generator=random, requires_grad=True) for _ in range(3)]
    output, weights = attend(*parts, 0.7, causal, maps=True)
    quick, none = attend(*parts, 0.7, causal)
    assert none is None
    assert torch.allclose(weights.sum(dim=-1), torch.ones(2, 3, 40, dtype=torch.float64), rtol=0, atol=1e-14)
    assert torch.allclose(quick, output, rtol=0, atol=1e-12)
    for ours, theirs in zip(*(torch.autograd.grad(x.square().sum(), parts) for x in (quick, output)), strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n", "is_sparse"), [(64, False), (383, False), (384, True), (2000, True)])
def test_patterns_of_few_tokens_use_dense_attention(n, is_sparse, monkeypatch):
    calls, sparse = [], attending._sparse
    monkeypatch.setattr(attending, "_sparse", lambda *given: calls.append(1) or sparse(*given))
    x = torch.randn(1, 1, n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pattern = TokenPattern(local=2, global_tokens=1, random_tokens=1)
    output, _ = attend(x, x, x, 1.0, False, pattern)
    assert bool(calls) == is_sparse
    assert torch.allclose(output, sparse(x, x, x, 1.0, pattern), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["transformer", "pde"])
def test_maps_are_kept_on_request_only(kind):
    network = network_of(f"network.kind={kind}", "training.precision=float64")
    inputs = inputs_of(network)
    (logits, without), (mapped, trace) = traced(network, inputs), traced(network, inputs, maps=True)
    assert without.weights == []
    assert [weights.shape for weights in trace.weights] == [(4, 4, 7, 7)] * 3
    assert torch.allclose(logits, mapped, rtol=0, atol=1e-12)


def test_sparse_attention_keeps_no_square_of_the_tokens():
    """Autograd stores for a layer a number of values proportional to n."""
    query = torch.zeros(1, 1, 1, dtype=torch.float64)

    def kept(n):
        sizes, given = [], query.expand(1, n, 4).clone().requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.numel()) or x, lambda x: x):
            attend(given, given, given, 1.0, False, TokenPattern(local=2, global_tokens=1))
        return sum(sizes)

    assert kept(2000) == pytest.approx(2 * kept(1000), rel=0.01)


def test_layers_that_differ_are_cases_one_at_a_time(tmp_path):
    network = network_of("network.kind=pde", "pde.coefficients=learned", "pde.diffusion=0.1", "pde.gate=0.1",
                         "training.precision=float64")  # fmt: skip
    with torch.no_grad():
        for k, layer in enumerate(network.body.layers):
            for name, value in layer.coefficients.items():
                value += 0.1 * k * (-1 if name == "step" else 1)
    _, trace = traced(network, inputs_of(network, batch=1))
    for k in range(3):
        solved = mf.simulate(field_case(network, trace.states[k][0].numpy(), tmp_path, k, 1)).position
        assert np.abs(solved[-1] - trace.states[k + 1][0].numpy()).max() < 1e-12
    with pytest.raises(ValueError, match="of one F and step"):
        field_case(network, trace.states[0][0].numpy(), tmp_path)


def test_gradients_of_the_pde_network_are_difference_quotients():
    network = network_of("network.kind=pde", "network.layer_norm=post", "pde.diffusion=0.2",
                         "pde.coefficients=learned", "training.precision=float64", "network.layers=2")  # fmt: skip
    inputs = inputs_of(network)
    network(inputs).square().sum().backward()
    h = 1e-5
    for name, parameter in network.named_parameters():
        if parameter.grad is None or name.endswith("gate"):  # a gate has no effect if layer norm fixes the length
            continue
        flat, slope = parameter.data.view(-1), parameter.grad.view(-1)
        values = []
        for sign in (1, -1):
            flat[0] += sign * h
            values.append(network(inputs).square().sum().item())
            flat[0] -= sign * h
        quotient = (values[0] - values[1]) / (2 * h)
        assert quotient == pytest.approx(slope[0].item(), rel=1e-6, abs=1e-8), name  # errors of order h² and 1e-16/h
