"""Snapshots of the state on disk: safetensors, one file per update kept, within a budget.

A thread writes them while the next update samples its answers, which changes no weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from rlplay.algorithms.entropy_control import EntropyControl
from rlplay.engine import ranks
from rlplay.engine.distillation.average import restore_average, saved
from rlplay.engine.log_softmax import widened
from rlplay.engine.model import POLICY, VALUE
from rlplay.engine.reward_model import reward_model_of
from rlplay.engine.stages import RunStage, stage_at
from rlplay.engine.state import REWARD, State, copy_weights, forget_values, new_optimizer
from rlplay.engine.transfer import to_host
from rlplay.trace.files_on_disk import unfinished_snapshots
from rlplay.trace.runfile import RunWriter
from rlplay.trace.runfile_format import RunFileError, snapshots_folder

BUDGET = 1_000_000_000
"""Bytes of disk that the snapshots of a run may take, unless a single one is larger."""

KEPT_AT_CLOSE = 200_000_000
"""Bytes that they may take once the run is closed."""

_AT_ONCE = 2**26
"""Bytes of a GPU's tensors that are copied together, which takes as much of its memory once more."""

_RARELY = 10
"""Updates between snapshots of a model so large that four of them exceed the budget."""

_REFERENCE = "reference."
"""What the names of a reference's weights begin with, where it has moved."""

_MADE = "made."
"""What the names of such weights begin with in a snapshot."""

_MOMENTS = ("exp_avg", "exp_avg_sq", "step", "master")


class SnapshotStore:
    """The snapshots of one run: a file each, beside the run file, and a row in it. The first process writes them.

    Where a run has stages, the state in which each of them begins is kept for good: its policy is the stage's
    reference. Update 0 of a run without stages needs no snapshot. Where another trainer made the first updates, the
    state after the last of them is kept for good, and there is none before.
    """

    def __init__(self, writer: RunWriter, run: Path, stages: list[RunStage]) -> None:
        self._writer = writer
        self._folder = snapshots_folder(run)
        if self._folder.is_symlink():
            raise RunFileError(f"{self._folder} is a link to another folder; put the folder itself there")
        self._stages = stages
        self._starts = {stage.begins for stage in stages} if len(stages) > 1 else set()
        self._first = max((stage.made_before for stage in stages), default=0)
        self._for_good = self._starts | ({self._first} if self._first else set())
        for unfinished in unfinished_snapshots(self._folder) if ranks.is_first() else ():
            unfinished.unlink(missing_ok=True)
        self.latest = 0
        """The last update that is kept; only the first process knows it."""
        self._thread = ThreadPoolExecutor(1, "snapshot")
        self._writing: tuple[int, Future[int]] | None = None  # the update, and the size of its file
        ranks.first(self._look)

    def _look(self) -> None:
        self.latest = max(self._kept(), default=0)

    def _kept(self) -> dict[int, int]:
        return {snapshot.update: snapshot.bytes for snapshot in self._writer.snapshots()}

    def keep(self, state: State, always: bool = False) -> None:
        """Save the state after its last finished update, unless it is kept already; then thin out to the budget.

        Raises OSError or SafetensorError if it cannot be written, as `finish` does.
        """
        self.begin(state, always)
        self.finish()

    def begin(self, state: State, always: bool = False) -> None:
        """The first half of `keep`: a thread writes. On a CPU it reads the weights themselves: nothing may change
        them before `finish`."""
        if ranks.is_first() and self._is_due(state.update, always):
            tensors = _on_host(_contents(state))
            self._writing = state.update, self._thread.submit(_written, tensors, self.path(state.update))

    @property
    def is_writing(self) -> bool:
        """Whether the thread writes what `begin` has begun; only the first process knows it."""
        return self._writing is not None and not self._writing[1].done()

    def finish(self) -> None:
        """Wait until what was begun is on disk, and list it as kept; in every process, as it is for all to know."""
        ranks.first(self._finish)

    def _finish(self) -> None:
        if self._writing is None:
            return
        (update, size), self._writing = self._writing, None
        self._writer.add_snapshot(update, self.path(update), size.result())
        self._thin(BUDGET)

    def _is_due(self, update: int, always: bool) -> bool:
        kept = self._kept()
        size = max(kept.values(), default=0)
        rarely = 4 * size > BUDGET and update % _RARELY
        return update not in kept and (update in self._for_good or bool(update and (always or not rarely)))

    def thin(self, budget: int) -> None:
        """Delete snapshots until the rest fits into `budget` bytes; the starts of stages stay, whatever their size."""
        ranks.first(lambda: self._thin(budget))

    def _thin(self, budget: int) -> None:
        kept = self._kept()
        left = budget - sum(size for update, size in kept.items() if update in self._for_good)
        for update in to_drop({u: size for u, size in kept.items() if u not in self._for_good}, left):
            self._drop(update)
        self._look()

    def nearest(self, update: int) -> int:
        """The latest update at or before `update` whose state can be restored; 0 if there is none.

        Raises ValueError, one line, where another trainer made the updates from there on.
        """
        found = ranks.first(lambda: max((u for u in self._kept() if u <= update and self._usable(u)), default=0))
        if found < self._first:
            raise ValueError(
                f"this run has no weights of update {update}: another trainer made the first {self._first} updates, "
                "and the run begins at its checkpoint; give an earlier one"
            )
        return found

    def _usable(self, update: int) -> bool:
        needs = {update, self._start_of(update)} if self._starts else {update}
        return all(_is_own(self.path(needed)) for needed in needs)

    def _start_of(self, update: int) -> int:
        return self._stages[stage_at(self._stages, update)].begins

    def restore(self, state: State, update: int) -> None:
        """Put the state back to the nearest snapshot at or before `update`. Raises ValueError if it cannot be read."""
        nearest = self.nearest(update)
        stage = stage_at(self._stages, nearest)
        if stage != state.stage:
            restore(state, self.path(self._start_of(nearest)), self._start_of(nearest))
            state.hand_on(stage)
        if ranks.first(lambda: nearest in self._kept()):
            restore(state, self.path(nearest), nearest)
        else:
            restart(state)

    def kept(self) -> list[int]:
        """The updates whose snapshots are there, in order."""
        return sorted(update for update in self._kept() if _is_own(self.path(update)))

    @contextmanager
    def holding(self, state: State) -> Iterator[None]:
        """Within it there is a snapshot of the state after its last finished update, whatever the budget.

        Raises OSError or SafetensorError if it cannot be written.
        """
        update = state.update
        lent = update not in self.kept()
        if lent:
            size = _written(_on_host(_contents(state)), self.path(update))
            self._writer.add_snapshot(update, self.path(update), size)
        try:
            yield
        finally:
            if lent:
                self._drop(update)

    def forget_after(self, update: int) -> None:
        """Delete the snapshots of an abandoned branch."""

        def forget() -> None:
            for later in [u for u in self._kept() if u > update]:
                self._drop(later)
            self._look()

        ranks.first(forget)

    def _drop(self, update: int) -> None:
        self._writer.drop_snapshot(update)
        self.path(update).unlink(missing_ok=True)

    def path(self, update: int) -> Path:
        """Where the snapshot of an update is, or would be."""
        return self._folder / f"{update:06d}.safetensors"


def _is_own(path: Path) -> bool:
    """Whether a snapshot is there, and is no link, pipe or device."""
    return path.is_file() and not path.is_symlink()


@contextmanager
def opened(path: Path) -> Iterator[tuple[list[str], Callable[[str], Tensor], Callable[[str], Tensor]]]:
    """The names of the trained weights in a snapshot, and what reads one of them: as the model has it, and in float32,
    from its master where it has one. On the CPU.

    Raises ValueError, one line, if the file is damaged.
    """
    try:
        with safe_open(path, "pt") as file:
            every = set(file.keys())

            def exact(name: str) -> Tensor:
                master = f"master/{name}"
                return widened(file.get_tensor(master if master in every else name))

            yield [name for name in every if name.startswith((POLICY, VALUE, REWARD))], file.get_tensor, exact
    except (OSError, SafetensorError) as error:
        raise ValueError(f"snapshot {path} cannot be read ({error})") from error


@contextmanager
def opened_moments(path: Path) -> Iterator[Callable[[str], dict[str, Tensor]]]:
    """What reads what the optimizer held of a weight in a snapshot, by the optimizer's names; empty if nothing. On the
    CPU. Errors as in `opened`."""
    with opened(path) as (_, read, _), safe_open(path, "pt") as file:
        every = set(file.keys())

        def held(name: str) -> dict[str, Tensor]:
            return {key: read(f"{key}/{name}") for key in _MOMENTS if f"{key}/{name}" in every}

        yield held


def policy_weights(path: Path) -> dict[str, Tensor]:
    """The policy's trained weights in a snapshot, by their names in it, on the CPU. Errors as in `opened`."""
    with opened(path) as (names, read, _):
        return {name.removeprefix(POLICY): read(name) for name in names if name.startswith(POLICY)}


def _contents(state: State) -> dict[str, Tensor]:
    """What `restore` needs of the state after `state.update` updates, where it is."""
    tensors: dict[str, Tensor] = {name: p.detach() for name, p in state.parameters.items()}
    for name, parameter in state.parameters.items():
        for key, value in state.optimizer.state.get(parameter, {}).items():
            tensors[f"{key}/{name}"] = value
    tensors |= saved(state) | _teacher(state)
    if state.lm.began is not None:
        tensors |= {f"{_REFERENCE}{name}": p.detach() for name, p in state.lm.reference.named_parameters()}
    tensors["num_tokens"] = torch.tensor(state.num_tokens)
    tensors["kl_coef"] = torch.tensor(state.adapted, dtype=torch.double)
    tensors["entropy_coef"] = torch.tensor(astuple(state.entropy), dtype=torch.double)
    return tensors | state.sampler.contents(state.update)


def _teacher(state: State) -> dict[str, Tensor]:
    """The weights of a teacher that the run has made itself, in the snapshot with which its stage begins."""
    stage = state.stages[state.stage] if state.stages else None
    if stage is None or not stage.restart or stage.begins != state.update:
        return {}
    assert state.teaching.model is not None
    return {f"{_MADE}{name}": each.detach() for name, each in state.teaching.model.policy.named_parameters()
            if name in state.teaching.begun}  # fmt: skip


def _on_host(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, contiguous, on the CPU: copies of those on a GPU, the others themselves."""
    parcels, size = [list[str]()], 0
    for name, tensor in tensors.items():
        size += tensor.nbytes
        if parcels[-1] and size > _AT_ONCE:
            parcels.append([])
            size = tensor.nbytes
        parcels[-1].append(name)
    copies = {
        name: copy for names in parcels for name, copy in zip(names, _parcel([tensors[n] for n in names]), strict=True)
    }
    return {name: copy.contiguous() for name, copy in copies.items()}


def _parcel(tensors: list[Tensor]) -> list[Tensor]:
    """Copies on the CPU, made together unless a GPU has no memory left for that."""
    try:
        return to_host(tensors)
    except torch.OutOfMemoryError:
        return [tensor.detach().cpu() for tensor in tensors]


def _written(tensors: dict[str, Tensor], path: Path) -> int:
    """Write the tensors to `path`, whole or not at all; returns its size in bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    save_file(tensors, partial)
    partial.replace(path)
    return path.stat().st_size


def restore(state: State, path: Path, update: int) -> None:
    """Put the state back to what a snapshot of `update` holds.

    Raises ValueError, one line, if the file is damaged or belongs to another model.
    """
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"snapshot {path} cannot be read ({error}); rewind to another update") from error
    state.without_reward_model()
    if any(name.startswith(REWARD) for name in tensors):
        reward_model_of(state)
    held = {name: tensor.shape for name, tensor in tensors.items() if name.startswith((POLICY, VALUE, REWARD))}
    needed = {name: parameter.shape for name, parameter in state.parameters.items()}
    if others := [name for name in held | needed if held.get(name) != needed.get(name)]:
        raise ValueError(
            f"snapshot {path} does not fit this model ({others[0]}): another model or another version of rlplay wrote "
            "it; begin a new run"
        )
    state.optimizer = new_optimizer(state.parameters, state.settings)
    for name, parameter in state.parameters.items():
        with torch.no_grad():
            parameter.copy_(tensors[name])
        moments = {key: tensors[f"{key}/{name}"] for key in _MOMENTS if f"{key}/{name}" in tensors}
        if moments:
            state.optimizer.state[parameter] = {key: value.to(parameter.device) for key, value in moments.items()}
    restore_average(state, tensors)
    moved = {n.removeprefix(_REFERENCE): t for n, t in tensors.items() if n.startswith(_REFERENCE)}
    state.put_reference(moved)
    if state.teaching.model is not None:
        for name, weight in state.teaching.model.policy.named_parameters():
            if f"{_MADE}{name}" in tensors:
                weight.data.copy_(tensors[f"{_MADE}{name}"])
    state.num_tokens = int(tensors["num_tokens"])
    adapted, start = tensors["kl_coef"].tolist() if "kl_coef" in tensors else (0.0, 0.0)
    state.adapted = adapted, start
    state.entropy = EntropyControl(*tensors["entropy_coef"].tolist()) if "entropy_coef" in tensors else EntropyControl()
    state.sampler.restore(tensors, state.lm.device)
    state.update = update


def restart(state: State) -> None:
    """Put the state back to before the first update: the policy as the reference, a fresh head and optimizer."""
    state.put_reference({})
    copy_weights(state.lm.reference, state.lm.policy)
    forget_values(state.value_head)
    state.without_reward_model()
    state.optimizer = new_optimizer(state.parameters, state.settings)
    state.update = state.num_tokens = 0
    state.adapted, state.entropy = (0.0, 0.0), EntropyControl()
    state.sampler.forget()
    state.average = None


def to_drop(sizes: dict[int, int], budget: int) -> list[int]:
    """Which snapshots, {update: bytes}, to delete so that the rest fits: the newest stays, the past gets sparser.

    Each time the one goes whose loss makes the smallest hole in proportion to its age.
    """
    kept, dropped = dict(sizes), []
    while sum(kept.values()) > budget and len(kept) > 1:
        updates = sorted(kept)
        newest = updates[-1]
        holes = [
            ((after - before) / (newest - update + 1), update)
            for before, update, after in zip([0, *updates], updates[:-1], updates[1:], strict=False)
        ]
        _, victim = min(holes)
        dropped.append(victim)
        del kept[victim]
    return dropped
