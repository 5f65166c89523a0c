"""What of a recorded run of TRL can be had again at a checkpoint, what cannot, and whether it makes a run at all."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from rlplay.algorithms.apply import apply_all
from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.algorithms.setting_values import decoded, takes, written
from rlplay.algorithms.settings import ANY_LOSS, Settings
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.foreign.from_checkpoint.checkpoint import Checkpoint, read_checkpoint
from rlplay.foreign.from_checkpoint.places import model_here, update_of
from rlplay.foreign.from_checkpoint.rates import constant, last_logged, rate_at, scheduled, updates
from rlplay.tasks.own_rewards import reward_name
from rlplay.trace.numbers import compact
from rlplay.trace.runfile import RunReader
from rlplay.trace.text import visible
from rlplay.trace.update import Update

_UNKNOWN = "min_p, repetition_penalty, generation_kwargs, bf16 or fp16, sync_ref_model, callbacks, a data collator"
"""Options of TRL that change what is trained, and that no recording has."""
_NEEDED = ("num_prompts", "learning_rate", "max_grad_norm")
_NEEDED_TO_SAMPLE = (
    "num_generations", "max_completion_length", "temperature", "top_p", "top_k", "num_iterations", "num_minibatches",
    "beta", "reward_weights",
)  # fmt: skip
"""Settings that a recording has to have: of any training, and of one that samples."""
_ROUNDED = {
    "bfloat16": "optimizer steps in bfloat16: rlplay takes them in float32 and rounds the weights",
    "float16": "weights in float16: rlplay keeps them in float32",
}
"""What rlplay does otherwise where the trained weights have this type."""


@dataclass(frozen=True)
class Plan:
    """A run that goes on at the end of `update` with these `settings`, as far as texts say.

    `model` is what the reference is loaded from, "" if that is the checkpoint itself. `rebuilt` and `lacking` say in
    lines what the run has of the trainer's, and what it has not.
    """

    run: Path
    checkpoint: Checkpoint
    update: int
    updates: int
    settings: Settings
    rewards: tuple[str, ...]
    model: str
    rebuilt: tuple[str, ...]
    lacking: tuple[str, ...]


def plan(run: Path, folder: Path, rewards: Sequence[str] = (), reference: Path | None = None) -> Plan:
    """What can be had of the recorded run `run` at the checkpoint in `folder`; nothing is loaded, nothing is run.

    `rewards` are FILE.py:FUNCTION or MODULE:FUNCTION, named as the trainer's functions; `reference` is a model's
    folder. Raises ForeignRunError, one line, if what can be had makes no run.
    """
    with RunReader(run) as reader:
        if not reader.started.source.startswith("TRL "):
            whose = (
                f"{visible(reader.started.source)} trained it" if reader.started.source else "it is rlplay's own run"
            )
            raise ForeignRunError(f"{run.stem}: {whose}, and --checkpoint is for runs of TRL; leave it out")
        checkpoint = read_checkpoint(folder)
        update = update_of(reader, checkpoint)
        near = _nearest(reader, update)
        recorded = reader.timeline().at(update + 1, "sample")
        settings = _checked(reader, decoded(recorded), near)
        _check_on_record(reader, settings, recorded)
        settings, rate = _with_rate(settings, "lr_scheduler_type" in recorded, checkpoint, update)
        settings = _with_rewards(settings, rewards)
        model = _model(reader.started.model, checkpoint, settings, reference)
        lacking = [*rate, *_defaults(settings, recorded), *_lacking(checkpoint, near, model, reader.started.dtype)]
        if settings.num_prompts > int(recorded["num_prompts"]) and settings.rewarded:
            lacking.append(
                "several samplings in an update, whose losses TRL weighs one by one: rlplay makes one of them"
            )
    planned = max(updates(settings, checkpoint), update + 1)
    found = Plan(run, checkpoint, update, planned, settings, tuple(rewards), model, (), tuple(lacking))
    return replace(found, rebuilt=tuple(_rebuilt(found)))


def _nearest(reader: RunReader, update: int) -> Update:
    """The update nearest to the checkpoint whose answers are on record."""
    known = reader.detailed()
    if not known:
        raise ForeignRunError(f"{reader.path.stem} has no prompts: its recording holds no answers of any update")
    return reader.load(min(known, key=lambda each: abs(each - update - 1)))


def _checked(reader: RunReader, settings: Settings, near: Update) -> Settings:
    """The settings, with as many prompts as an update really has. Raises ForeignRunError if rlplay has no such loss."""
    who = visible(reader.started.source)
    if not settings.axes_known:
        raise ForeignRunError(
            f"{reader.path.stem}: the recorder did not know the loss of {who}, so rlplay cannot train it"
        )
    alone = settings.loss_type in PAIR_LOSSES and PAIR_LOSSES[settings.loss_type].alone
    if alone or settings.kind == "reward model":
        kind = "single answers without pairs" if alone else "a scoring head instead of a policy"
        raise ForeignRunError(f"{reader.path.stem}: {who} trains {kind}, which cannot be rebuilt from a checkpoint yet")
    sampled = near.sampled
    if settings.rewarded and sampled is not None and not sampled.mask.all():
        raise ForeignRunError(
            f"{reader.path.stem}: a tool or an environment wrote a part of the answers, and it cannot be rebuilt"
        )
    prompts = max(settings.num_prompts, 0 if sampled is None else len(sampled.prompts))
    try:
        return apply_all(settings, {"num_prompts": prompts})
    except ValueError as error:
        raise ForeignRunError(f"{reader.path.stem}: its settings do not fit together: {error}") from None


def _check_on_record(reader: RunReader, settings: Settings, recorded: Container[str]) -> None:
    """Raises ForeignRunError if the recording lacks a setting without which it would be another training."""
    needed = (*_NEEDED, *(_NEEDED_TO_SAMPLE if settings.rewarded else ()))
    if missing := [name for name in needed if name not in recorded]:
        raise ForeignRunError(
            f"{reader.path.stem}: {missing[0]} is not on record, or has a value that rlplay does not take "
            f"({takes(missing[0])}), and without it this would be another training"
        )


def _defaults(settings: Settings, recorded: Container[str]) -> Iterator[str]:
    """The settings that are not on record and have rlplay's default."""
    names = [name for name in ANY_LOSS if settings.rewarded or name not in _NEEDED_TO_SAMPLE]
    if unsaid := [name for name in names if name not in recorded and name != "lr_scheduler_type"]:
        values = ", ".join(f"{name} is {written(getattr(settings, name))}" for name in unsaid)
        yield f"settings that are not on record, or have a value that rlplay does not take: {values}"


def _with_rate(settings: Settings, named: bool, checkpoint: Checkpoint, update: int) -> tuple[Settings, list[str]]:
    """The settings with the learning rate from the checkpoint on, and what of its schedule cannot be had."""
    found = scheduled(settings, named, checkpoint, update)
    logged = last_logged(checkpoint)
    rate = logged if found is None and logged is not None else settings.learning_rate
    chosen = constant(settings, rate) if found is None else found
    place = 0 if found is None else checkpoint.step
    if rate_at(chosen, checkpoint, place) == 0:
        raise ForeignRunError(
            f"{checkpoint.path.name}: the learning rate is 0 from step {checkpoint.step} on, where its schedule ends; "
            "give an earlier checkpoint"
        )
    lacks = f"the schedule of the learning rate: it stays {compact(rate, 3)}, as it was at step {checkpoint.step}"
    return chosen, [] if found is not None else [lacks]


def _with_rewards(settings: Settings, rewards: Sequence[str]) -> Settings:
    """The settings with the weights of the rewards that are given. Raises ForeignRunError if one is missing."""
    if not settings.rewarded:
        if rewards:
            raise ForeignRunError(f"{settings.algorithm} learns from given answers: leave --reward out")
        return settings
    names, recorded = [reward_name(entry) for entry in rewards], settings.reward_weights
    if missing := [name for name, weight in recorded.items() if weight and name not in names]:
        wanted = " ".join(f"--reward FILE.py:{visible(name)}" for name in missing)
        raise ForeignRunError(f"without its reward the run learns nothing; name the file of each function: {wanted}")
    if strange := [name for name in names if name not in recorded]:
        known = ", ".join(map(visible, recorded)) or "none"
        raise ForeignRunError(f"--reward {strange[0]}: the run has no reward of this name; it has {known}")
    return msgspec.structs.replace(settings, reward_weights={name: recorded[name] for name in names})


def _model(recorded: str, checkpoint: Checkpoint, settings: Settings, reference: Path | None) -> str:
    """What the reference is loaded from; "" for the checkpoint itself. Raises ForeignRunError if it is gone."""
    if reference is not None:
        if not (found := model_here(str(reference))):
            raise ForeignRunError(f"--reference {reference}: this folder holds no model, as it has no config.json")
        return found
    name = checkpoint.base or recorded
    found = model_here(name)
    if found or not (checkpoint.base or reads_reference(settings)):
        return found
    what = (
        "the base of its adapters" if checkpoint.base else f"the reference, which beta {written(settings.beta)} needs,"
    )
    raise ForeignRunError(
        f"{what} was {visible(name)}, neither a folder here nor in Hugging Face's cache; name it: --reference DIR"
    )


def reads_reference(settings: Settings) -> bool:
    """Whether the loss compares the policy with the reference."""
    if settings.rewarded:
        return settings.reads_reference
    return settings.loss_type in PAIR_LOSSES and PAIR_LOSSES[settings.loss_type].with_reference


def _rebuilt(found: Plan) -> Iterator[str]:
    s, checkpoint = found.settings, found.checkpoint
    yield f"weights of {checkpoint.path.name}, step {checkpoint.step:,}, at the end of update {found.update:,}"
    sampled = f" × {s.num_generations} answers of up to {s.max_completion_length} tokens" if s.rewarded else ""
    heat = f", temperature {compact(s.temperature)}" if s.rewarded else ""
    beta = "" if s.kind == "imitation" else f", beta {compact(s.beta)}"
    yield f"settings: {s.algorithm}, {s.num_prompts} prompts{sampled}{heat}{beta}"
    left = max(0, checkpoint.planned - checkpoint.step)
    schedule = "" if s.lr_scheduler_type == "constant" else f" with {left:,} steps of the schedule left"
    rate = rate_at(s, checkpoint, checkpoint.step)
    yield f"learning rate {compact(rate, 3)}, {s.lr_scheduler_type.replace('_', ' ')}{schedule}"
    for entry in found.rewards:
        weight = s.reward_weights[reward_name(entry)]
        yield f"reward {visible(entry)}, weight {compact(weight)}"
    if found.model:
        yield f"reference {visible(found.model)}" + (", adapters off" if checkpoint.base else "")


def _lacking(checkpoint: Checkpoint, near: Update, model: str, dtype: str) -> Iterator[str]:
    yield "TRL's random numbers: rlplay draws other prompts of those on record, and samples other answers"
    if near.sampled is not None and near.sampled.sampling_logprobs is not None:
        yield "vLLM and its correction: rlplay samples with the policy itself"
    if (said := _ROUNDED.get(dtype)) is not None:
        yield said
    for name, value in checkpoint.dropout.items():
        yield f"{name} {compact(value)}: rlplay trains without dropout"
    if not model:
        yield "the reference: beta is 0, so nothing reads it; a try with beta starts from the checkpoint"
    if checkpoint.optimizer is None:
        yield "Adam's moments: the checkpoint has no optimizer.pt, so they begin at 0"
    yield f"what no recording says, if the script set it ({_UNKNOWN}): training_args.bin, a pickle, stays closed"
