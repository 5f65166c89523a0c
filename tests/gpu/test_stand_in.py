"""The stand-in does what a GPU does, in the respects that the other tests rely on."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.gpu import cuda
from tests.gpu.counting import counted

pytestmark = pytest.mark.stand_in

GPU = torch.device("cuda", 0)


def numbers(*size: int) -> Tensor:
    return torch.arange(float(torch.Size(size).numel())).view(size)


def test_tensors_are_on_the_device_and_have_the_numbers_of_the_cpu() -> None:
    weights = numbers(4, 3).to(GPU).requires_grad_()
    loss = torch.log_softmax(numbers(2, 4).to(GPU) @ weights, -1).square().sum()
    loss.backward()
    assert weights.grad is not None
    assert weights.grad.device == GPU
    same = numbers(4, 3).requires_grad_()
    torch.log_softmax(numbers(2, 4) @ same, -1).square().sum().backward()
    assert torch.equal(weights.grad.cpu(), same.grad)
    assert torch.empty(9, device=GPU).isnan().all()
    assert copy.deepcopy(weights.detach()).device == GPU


@pytest.mark.parametrize("other", ["cpu", "cuda:1"])
def test_devices_do_not_mix(other: str) -> None:
    here, there = numbers(3).to(GPU), numbers(3).to(other)
    with pytest.raises(RuntimeError, match="at least two devices"):
        here + there
    assert torch.equal((here + there.to(GPU)).cpu(), 2 * numbers(3))
    assert torch.equal((here + torch.tensor(2.0)).cpu(), numbers(3) + 2), "a number of the host's is no tensor"
    with pytest.raises(RuntimeError, match="at least two devices"):
        torch.cat([here, torch.ones(1)])


def test_an_output_that_grows_is_the_devices() -> None:
    values, grown = numbers(6).view(2, 3), torch.empty(0, device=GPU)
    torch.sum(values.to(GPU), -1, out=grown)
    assert torch.equal(grown.cpu(), values.sum(-1))
    found = values.to(GPU).logsumexp(-1)
    assert found.is_cuda
    assert torch.equal(found.cpu(), values.logsumexp(-1))


def test_what_makes_the_host_wait_is_counted() -> None:
    values, mask, at = numbers(6).to(GPU), (numbers(6) > 2).to(GPU), torch.tensor([1, 2]).to(GPU)
    with counted() as found:
        values[at] = values[at] + 1
        values[mask] = 0.0
        torch.full((), 3.0, device=GPU).add_(1)
        torch.where(mask, values, -values).sum().to(torch.float64)
        torch.empty(6).to(GPU, non_blocking=True)
    assert not found.waits, found
    for wait in (lambda: values[mask], lambda: values.sum().item(), lambda: values.new_tensor(3.0), mask.nonzero,
                 lambda: values[torch.tensor([1])], lambda: bool(mask.any()), values.tolist, torch.cuda.synchronize,
                 torch.accelerator.synchronize, lambda: torch.empty(6).copy_(values, non_blocking=True)):  # fmt: skip
        with counted() as found:
            wait()
        assert found.waits.total() == 1, (wait, found)


def test_kernels_are_counted_and_a_list_is_one() -> None:
    several = [numbers(3).to(GPU) for _ in range(5)]
    with counted() as found:
        torch._foreach_add_(several, 1.0)
        several[0].view(3, 1).expand(3, 2).t()
    assert (found.kernels.total(), found.waits.total()) == (1, 0), found
    assert torch.equal(several[4].cpu(), numbers(3) + 1)


def test_a_copy_to_pinned_memory_is_there_once_somebody_waited() -> None:
    value, pinned = numbers(3).to(GPU), torch.empty(3).pin_memory()
    assert pinned.is_pinned()
    event = torch.cuda.Event(enable_timing=True)
    with counted() as found:
        pinned.copy_(value, non_blocking=True)
        value.zero_()
        event.record()
        assert not event.query()
    assert not found.waits, found
    assert pinned.isnan().all()
    event.synchronize()
    assert torch.equal(pinned, numbers(3))
    assert numbers(3).to(GPU).to("cpu", non_blocking=True).isnan().all(), "torch pins it unasked"


def test_pinned_memory_must_not_change_while_it_is_copied() -> None:
    pinned = numbers(3).pin_memory()
    copied = pinned.to(GPU, non_blocking=True)
    pinned.zero_()
    with pytest.raises(RuntimeError, match="pinned memory was written"):
        copied.sum().item()


def test_a_stream_is_waited_for_on_its_own() -> None:
    value, pinned, aside = numbers(3).to(GPU), torch.empty(3).pin_memory(), torch.cuda.Stream()
    with torch.cuda.stream(aside):
        pinned.copy_(value, non_blocking=True)
    torch.cuda.current_stream().synchronize()
    assert pinned.isnan().all()
    torch.cuda.current_stream().wait_stream(aside)
    torch.cuda.current_stream().synchronize()
    assert torch.equal(pinned, numbers(3))


def test_times_are_known_once_an_event_is_over() -> None:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    end.record()
    with pytest.raises(RuntimeError, match="not ready"):
        begin.elapsed_time(end)
    end.synchronize()
    assert begin.elapsed_time(end) >= 0


def test_a_graph_keeps_addresses_and_its_capture_runs_nothing() -> None:
    given, total = numbers(3).to(GPU), torch.zeros(3, device=GPU)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = given * 2
        total.add_(made)
    assert total.sum().item() == 0
    assert made.isnan().all()
    for _ in range(2):
        graph.replay()
    assert torch.equal(total.cpu(), 4 * numbers(3))
    given.fill_(1)
    with counted() as found:
        graph.replay()
    assert (found.replays, found.kernels.total()) == (1, 0)
    assert torch.equal(total.cpu(), 4 * numbers(3) + 2)
    assert torch.equal(made.cpu(), torch.full((3,), 2.0))
    del given
    with pytest.raises(RuntimeError, match="freed after its capture"):
        graph.replay()


def test_gradients_and_an_optimizer_step_can_be_captured() -> None:
    weights = numbers(3).to(GPU).requires_grad_()
    same = numbers(3).requires_grad_()
    for parameter in (weights, same):
        parameter.grad = torch.zeros_like(parameter)
    optimizers = [torch.optim.AdamW([weights], capturable=True), torch.optim.AdamW([same])]
    weights.square().sum().backward()
    optimizers[0].step()
    with torch.no_grad():
        weights.copy_(numbers(3))
        for state in optimizers[0].state.values():
            for value in state.values():
                value.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        weights.grad.zero_()
        weights.square().sum().backward()
        optimizers[0].step()
    for _ in range(3):
        graph.replay()
        same.grad.zero_()
        same.square().sum().backward()
        optimizers[1].step()
    torch.testing.assert_close(weights.detach().cpu(), same.detach(), rtol=0, atol=1e-6)


def test_another_thread_may_work_while_one_captures() -> None:
    value, found = numbers(3).to(GPU), list[float]()
    thread = threading.Thread(target=lambda: found.append(float((value * 2).sum())))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        made = value + 1
        thread.start()
        thread.join()
    graph.replay()
    assert found == [6.0]
    assert graph.kernels() == {"aten::add": 1}
    assert torch.equal(made.cpu(), numbers(3) + 1)


FORBIDDEN: dict[str, Callable[[Tensor], object]] = {
    "a number for the host": lambda value: value.sum().item(),
    "a copy to the host": Tensor.cpu,
    "a size for the host": Tensor.nonzero,
    "waiting": lambda value: torch.cuda.synchronize(),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_capture_refuses_to_wait_and_hides_why(what: str) -> None:
    value, before = numbers(3).to(GPU), torch.cuda.current_stream()
    with (
        pytest.raises(RuntimeError, match="previous error during capture") as raised,
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        FORBIDDEN[what](value)
    assert "not permitted when stream is capturing" in str(raised.value.__context__)
    assert not torch.cuda.is_current_stream_capturing()
    assert torch.cuda.current_stream() != before, "as torch leaves it"
    with pytest.raises(RuntimeError, match="captures_underway"):
        torch.cuda.empty_cache()


def test_memory_runs_out() -> None:
    used = torch.cuda.memory_allocated()
    value = torch.zeros(1000, device=GPU)
    assert torch.cuda.memory_allocated() == used + 4000
    cuda.call("set_limit", 0, used + 5000)
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        value + 1
    cuda.call("set_limit", 0, 0)
    cuda.call("fail_allocation", 1)
    value.add(1)
    with pytest.raises(torch.OutOfMemoryError):
        value.add(1)
    value.add(1)
    del value
    assert torch.cuda.memory_allocated() == used
