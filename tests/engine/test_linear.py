"""Linear layers by oneDNN compute what torch's own compute, forwards and backwards."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint
from transformers.pytorch_utils import Conv1D

from rlplay.engine import linear, onednn
from rlplay.engine.compat import onednn_linear
from rlplay.engine.linear import FasterConv1D, FasterLinear, use_faster_products
from rlplay.engine.model import load_model
from rlplay.engine.weights import Weights

CPU = torch.device("cpu")
needs_onednn = pytest.mark.skipif(onednn_linear() is None, reason="this build of torch has no such operator")


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every product by oneDNN, whatever the CPU is."""
    monkeypatch.setattr(linear, "WORTH", 0)
    monkeypatch.setattr(linear, "ROWS", 2)
    monkeypatch.setattr(linear, "is_faster", lambda: onednn_linear() is not None)


def both(kind: str, bias: bool = True) -> tuple[nn.Module, nn.Module]:
    """A layer from 6 to 5 numbers as torch has it, and the same by oneDNN."""
    torch.manual_seed(0)
    plain: nn.Module = nn.Linear(6, 5, bias=bias) if kind == "linear" else Conv1D(5, 6)
    if kind == "conv1d":
        nn.init.normal_(plain.bias)  # type: ignore[arg-type]
    faster = copy.deepcopy(plain)
    faster.__class__ = FasterLinear if kind == "linear" else FasterConv1D
    return plain, faster


def gradients(layer: nn.Module, x: Tensor, along: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(layer(x), (x, *layer.parameters()), along)


INPUTS: dict[str, Callable[[], Tensor]] = {
    "rows": lambda: torch.randn(7, 6),
    "batch": lambda: torch.randn(3, 4, 6),
    "transposed": lambda: torch.randn(6, 7).t(),
    "transposed batch": lambda: torch.randn(4, 3, 6).transpose(0, 1),
    "sliced": lambda: torch.randn(3, 4, 12)[:, 1:, ::2],
    "expanded": lambda: torch.randn(1, 4, 6).expand(3, 4, 6),
}


@needs_onednn
@pytest.mark.parametrize("kind", ["linear", "conv1d"])
@pytest.mark.parametrize("name", INPUTS)
def test_a_layer_and_its_gradients_are_as_exact_as_torchs_own(kind: str, name: str) -> None:
    plain, faster = both(kind)
    x = INPUTS[name]().requires_grad_()
    along = torch.randn(5, *x.shape[:-1]).movedim(0, -1)  # a gradient that is not contiguous
    exact = copy.deepcopy(plain).double()
    x64 = x.detach().double().contiguous().requires_grad_()
    expected = gradients(exact, x64, along.double())
    torch.testing.assert_close(faster(x).double(), exact(x64), rtol=0, atol=2e-6)
    for found, one in zip(gradients(faster, x, along), expected, strict=True):
        torch.testing.assert_close(found.double(), one, rtol=0, atol=5e-6)
    with torch.no_grad():
        torch.testing.assert_close(faster(x), plain(x.contiguous()), rtol=0, atol=2e-6)


@needs_onednn
def test_a_layer_without_a_bias_and_an_expanded_gradient() -> None:
    plain, faster = both("linear", bias=False)
    x = torch.randn(7, 6, requires_grad=True)
    for layer in (plain, faster):
        layer(x).sum().backward()  # whose gradient is one number, expanded
    torch.testing.assert_close(faster.weight.grad, plain.weight.grad)


@needs_onednn
@pytest.mark.parametrize("frozen", ["input", "weight", "bias"])
def test_only_what_learns_gets_a_gradient(frozen: str) -> None:
    plain, faster = both("linear")
    x, along = torch.randn(7, 6), torch.randn(7, 5)
    found: list[list[Tensor]] = []
    for layer in (plain, faster):
        inputs = x.clone().requires_grad_(frozen != "input")
        for name, parameter in layer.named_parameters():
            parameter.requires_grad_(name != frozen)
        layer(inputs).backward(along)
        tensors = [inputs, *layer.parameters()]
        assert [t.grad is None for t in tensors] == [not t.requires_grad for t in tensors]
        found.append([t.grad for t in tensors if t.grad is not None])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other, one)


@needs_onednn
def test_second_derivatives_and_a_graph_that_is_kept() -> None:
    found = []
    for layer in both("linear"):
        x, along = torch.linspace(-1, 1, 42).reshape(7, 6).requires_grad_(), torch.ones(7, 5, requires_grad=True)
        parameters = tuple(layer.parameters())
        first = torch.autograd.grad(layer(x).tanh(), parameters, along, create_graph=True)
        second = [torch.autograd.grad(first[0].square().sum(), (x, along, *parameters), retain_graph=True)
                  for _ in range(2)]  # fmt: skip
        assert all(torch.equal(a, b) for a, b in zip(*second, strict=True))
        found.append(second[0])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other, one)


@needs_onednn
@pytest.mark.parametrize("kind", ["linear", "conv1d"])
@pytest.mark.parametrize("moved", [("x",), ("weight",), ("bias",), ("x", "weight", "bias")], ids="-".join)
def test_the_derivative_along_a_direction_is_torchs_own(kind: str, moved: tuple[str, ...]) -> None:
    found, x = list[Tensor](), torch.randn(3, 4, 6)
    ways = {name: torch.randn_like(p) for name, p in both(kind)[0].named_parameters()} | {"x": torch.randn_like(x)}
    for layer in both(kind):
        own = {name: p.detach() for name, p in layer.named_parameters()} | {"x": x}
        with forward_ad.dual_level():
            dual: Any = {n: forward_ad.make_dual(own[n], ways[n]) if n in moved else own[n] for n in own}  # type: ignore[no-untyped-call]
            inputs = dual.pop("x")
            result = torch.func.functional_call(layer, dual, (inputs,))
            found.append(forward_ad.unpack_dual(result).tangent)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=5e-6)


@needs_onednn
def test_a_layer_that_is_run_again() -> None:
    _, faster = both("linear")
    x, along = torch.randn(7, 6, requires_grad=True), torch.randn(7, 5)
    again = torch.autograd.grad(checkpoint(faster, x, use_reentrant=False), (x, *faster.parameters()), along)
    assert all(torch.equal(a, b) for a, b in zip(again, gradients(faster, x, along), strict=True))


@pytest.mark.parametrize(
    ("x", "why"),
    [
        (torch.randn(1, 192), "one row"),
        (torch.randn(127, 192), "few rows"),
        (torch.randn(256, 192, dtype=torch.bfloat16), "bfloat16"),
        (torch.randn(256, 192, dtype=torch.float64), "float64"),
    ],
)
def test_what_is_small_or_not_float32_stays_with_torch(x: Tensor, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "WORTH", onednn.WORTH)
    monkeypatch.setattr(linear, "ROWS", onednn.ROWS)
    monkeypatch.setattr(linear, "linear", None)
    plain = nn.Linear(192, 192, dtype=x.dtype)
    faster = copy.deepcopy(plain)
    faster.__class__ = FasterLinear
    assert torch.equal(faster(x), plain(x)), why


def test_what_is_large_goes_to_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "WORTH", onednn.WORTH)
    monkeypatch.setattr(linear, "ROWS", onednn.ROWS)
    assert linear.is_worth(torch.empty(4, 32, 192), torch.empty(192, 192))
    assert not linear.is_worth(torch.empty(4, 32, 64), torch.empty(64, 64))
    assert not linear.is_worth(torch.empty(4, 32, 192, device="meta"), torch.empty(192, 192, device="meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert not linear.is_worth(torch.empty(4, 32, 192), torch.empty(192, 192))


def test_weights_that_are_frozen_need_no_inputs_for_the_gradient() -> None:
    """With LoRA most are; what a pass keeps is most of the memory."""
    x, kept = torch.randn(4, 6, requires_grad=True), list[Tensor]()
    _, faster = both("linear")
    faster.requires_grad_(False)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        out = faster(x)
    assert [tuple(tensor.shape) for tensor in kept] == [(5, 6)]
    out.sum().backward()
    torch.testing.assert_close(x.grad, faster.weight.sum(0).expand(4, 6))


class Halved(nn.Linear):
    """A linear layer with another computation."""

    def forward(self, input: Tensor) -> Tensor:
        """Half of it."""
        return super().forward(input) / 2


@needs_onednn
def test_only_the_class_of_plain_layers_changes() -> None:
    model = nn.Sequential(nn.Linear(6, 5), Conv1D(4, 5), Halved(4, 3))
    names, twin = list(model.state_dict()), copy.deepcopy(model)
    use_faster_products(model, CPU)
    assert [type(module) for module in model] == [FasterLinear, FasterConv1D, Halved]
    assert list(model.state_dict()) == names
    assert [type(module) for module in copy.deepcopy(model)] == [FasterLinear, FasterConv1D, Halved]
    use_faster_products(twin, torch.device("meta"))
    assert type(twin[0]) is nn.Linear


@needs_onednn
@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_a_model_computes_the_same(architecture: str, micro_models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, ids, found = str(micro_models(architecture)), torch.arange(24).reshape(2, 12), []
    for faster in (False, True):
        monkeypatch.setattr(linear, "is_faster", lambda faster=faster: faster)
        lm = load_model(folder, CPU)
        kinds = {type(module) for each in (lm.policy, lm.reference) for module in each.modules()}
        assert bool(kinds & {FasterLinear, FasterConv1D}) == faster
        assert not faster or not kinds & {nn.Linear, Conv1D}
        logits = lm.policy(input_ids=ids).logits
        logits.log_softmax(-1)[..., 3].sum().backward()
        found.append((logits.detach(), *(p.grad for p in lm.policy.parameters())))
        assert torch.equal(lm.reference(input_ids=ids).logits, logits)
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5)


@needs_onednn
def test_adapters_and_their_base_use_it_too(micro_model: Path) -> None:
    pytest.importorskip("peft")
    weights = Weights(use_peft=True, lora_target_modules=("all-linear",))
    lm = load_model(str(micro_model), CPU, weights=weights)
    layers = {name: module for name, module in lm.policy.named_modules() if isinstance(module, nn.Linear)}
    assert {type(module) for module in layers.values()} == {FasterLinear}
    assert any("lora_A" in name for name in layers)
    assert any("base_layer" in name for name in layers)


@pytest.mark.parametrize(
    ("cpu", "capability", "faster"),
    [
        ("vendor_id : AuthenticAMD", "AVX512", True),
        ("vendor_id : GenuineIntel", "AVX512", False),
        ("vendor_id : AuthenticAMD", "AVX2", False),
    ],
)
def test_the_kind_of_cpu_decides(cpu: str, capability: str, faster: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "_cpu", lambda: cpu)
    monkeypatch.setattr(onednn, "onednn_linear", lambda: torch.mm)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    for backend in (torch.backends.mkl, torch.backends.mkldnn):
        monkeypatch.setattr(backend, "is_available", lambda: True)
    assert onednn.is_faster.__wrapped__() == faster
    monkeypatch.setattr(onednn, "onednn_linear", lambda: None)
    assert not onednn.is_faster.__wrapped__()


def test_a_build_without_the_operator_has_torchs_rate_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "onednn_linear", lambda: None)
    own, other = onednn.rates()
    assert own > 0
    assert other is None
