"""Makes a run file of a plan: rlplay resumes it where the trainer of TRL was.

The file has the recorded updates up to the checkpoint, the settings that hold from there on, and a snapshot with the
checkpoint's weights and Adam's moments. Its prompts and the model of its reference lie in a folder below
`rebuilt` in rlplay's own.
"""

from __future__ import annotations

import json
import shutil
import uuid
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from rlplay import paths
from rlplay.algorithms.setting_values import decoded
from rlplay.algorithms.settings import Settings
from rlplay.engine.estimate import free_memory, needs
from rlplay.engine.from_checkpoint.checks import compared
from rlplay.engine.from_checkpoint.moments import SavedOptimizer
from rlplay.engine.from_checkpoint.prompts import Rows, example_of, rows_of
from rlplay.engine.from_checkpoint.start_folder import start_folder
from rlplay.engine.lora import base_of, put_adapters
from rlplay.engine.model import POLICY, choose_device, load_pretrained
from rlplay.engine.prepare import Progress, prepare
from rlplay.engine.snapshots import SnapshotStore
from rlplay.engine.state import RunPlan, State
from rlplay.engine.weights import Weights
from rlplay.foreign.from_checkpoint.plan import Plan
from rlplay.foreign.from_checkpoint.rates import constant, rate_at, same
from rlplay.foreign.from_checkpoint.recorded_prompts import prompts_of, recorded_prompts
from rlplay.scenario.named_files import from_folder
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.branch import branch
from rlplay.trace.numbers import compact
from rlplay.trace.records import Changed, Started
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.runfile_format import snapshots_folder

_DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class Rebuilt:
    """The job that goes on, and in lines what was found while it was made: had again, lacking, and compared."""

    job: Job
    rebuilt: tuple[str, ...]
    lacking: tuple[str, ...]
    compared: tuple[str, ...]


def rebuild(plan: Plan, out: Path, device: str = "auto", progress: Progress = lambda *_: None) -> Rebuilt:
    """Make the run file `out`, which nobody has yet, of the plan; `progress` is told of each step, as by a driver.

    The code of the plan's rewards has to be trusted by now. Raises ValueError, one line, if the model does not fit
    into memory, if files do not fit together, or if the checkpoint is not of this run; nothing is left behind then.
    """
    _check_memory(plan, device)
    folder = paths.home() / "rebuilt" / uuid.uuid4().hex[:12]
    folder.mkdir(parents=True)
    try:
        return _rebuilt(plan, out, folder, device, progress)
    except BaseException:
        for place in (folder, snapshots_folder(out)):
            shutil.rmtree(place, ignore_errors=True)
        out.unlink(missing_ok=True)
        raise


def _rebuilt(plan: Plan, out: Path, folder: Path, device: str, progress: Progress) -> Rebuilt:
    saved = SavedOptimizer(plan.checkpoint.optimizer)
    settings, lacking = _with_saved_rate(plan, saved)
    model = start_folder(plan, folder / "model")
    with closing(RunReader(plan.run)) as reader:
        rows, settings = _rows(plan, reader, model, settings)
        (folder / "prompts.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows.rows), encoding="utf-8")
        job = Job(_scenario(plan, reader.started, settings, model, folder, rows), str(out), device)
        state, run_plan, started = prepare(job, progress)
        _put_weights(plan, state)
        moments = saved.moments(_policy(state))
        _put_moments(moments.by_name, state)
        state.update, state.num_tokens = plan.update, int(_at(reader, plan.update).get("num_tokens", 0))
        agree, differ = _compared(plan, reader, state, rows.template)
        _write(plan, reader, out, started, settings)
    _keep(out, state, run_plan)
    columns = ", ".join(sorted(state.task.columns))
    rebuilt = [f"{len(rows.rows):,} prompts" + (f" with {columns}" if columns else "")]
    if moments.by_name:
        rebuilt.append(f"Adam's moments of {len(moments.by_name):,} of {len(_policy(state)):,} tensors")
    if rows.left_out:
        lacking.append(
            f"{rows.left_out:,} other prompts, of which the tokenizer makes other tokens than those recorded"
        )
    again = msgspec.structs.replace(job, resume=True)
    return Rebuilt(again, tuple(rebuilt), (*lacking, *moments.lacking, *differ), tuple(agree))


def _check_memory(plan: Plan, device: str) -> None:
    """Raises ValueError, one line, if weights, gradients and moments do not fit where they have to go."""
    from transformers import AutoConfig

    folder = plan.model if plan.checkpoint.base else str(plan.checkpoint.path)
    if plan.checkpoint.base:
        base_of(plan.checkpoint.path)
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        found = needs(config, _weights(plan), plan.settings)
    except Exception as error:  # a folder of somebody else's makes transformers raise anything
        raise ValueError(f"the model of {plan.checkpoint.path.name} cannot be read: {_line(error)}") from error
    needed, place = found.memory - found.step, choose_device(device)
    if needed > (free := free_memory(place)):
        raise ValueError(
            f"the model of {plan.checkpoint.path.name} needs {compact(needed / 2**30, 2)} GiB of memory with its "
            f"reference, gradients and Adam's moments, and {compact(free / 2**30, 2)} GiB are free on {place}"
        )


def _weights(plan: Plan) -> Weights:
    """How the trainer kept the weights; float16 is float32 here."""
    with closing(RunReader(plan.run)) as reader:
        dtype = reader.started.dtype
    adapters: dict[str, Any] = {}
    if plan.checkpoint.base:
        config = json.loads((plan.checkpoint.path / "adapter_config.json").read_text(encoding="utf-8"))
        modules = config.get("target_modules")
        named = (modules,) if isinstance(modules, str) else tuple(map(str, modules or ()))
        adapters = {"use_peft": True, "lora_r": int(config.get("r", 8)), "lora_target_modules": named}
    return Weights(dtype if dtype in _DTYPES else "float32", **adapters)


def _with_saved_rate(plan: Plan, saved: SavedOptimizer) -> tuple[Settings, list[str]]:
    """The settings with the rate that the optimizer would have taken next, and what of the plan's schedule is lost."""
    rate = saved.rate
    if rate is None or same(rate_at(plan.settings, plan.checkpoint, plan.checkpoint.step), rate):
        return plan.settings, []
    if rate == 0:
        raise ValueError(
            f"{plan.checkpoint.path.name}: the learning rate of the next step is 0; give an earlier checkpoint"
        )
    lack = (
        f"the learning rate as said above: optimizer.pt has {compact(rate, 3)} for the next step, and there it stays, "
        "whatever its schedule"
    )
    return constant(plan.settings, rate), [lack]


def _rows(plan: Plan, reader: RunReader, model: str, settings: Settings) -> tuple[Rows, Settings]:
    """The rows of the recorded prompts, and the settings with room for the longest answer that is given."""
    given = not plan.settings.rewarded
    tokenizer = _tokenizer(Path(model) / "base" if plan.checkpoint.base else Path(model))
    ends = frozenset(reader.started.ends) | {tokenizer.eos_token_id}
    prompts = recorded_prompts(reader, plan.update, given)
    rows = rows_of(prompts, tokenizer, ends, (plan.settings.kind == "imitation") if given else None)
    if not rows.rows:
        raise ValueError(
            f"none of the {len(prompts):,} recorded prompts can be rebuilt: the tokenizer of "
            f"{plan.checkpoint.path.name} makes other tokens of them, as of conversations of several "
            "turns or of prompts with tools"
        )
    longest = max((len(ids) for each in prompts for ids in each.answers.values()), default=0)
    return rows, msgspec.structs.replace(settings, max_completion_length=longest) if given else settings


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(
            folder, padding_side="left", local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # as above
        raise ValueError(f"the tokenizer in {folder} cannot be read: {_line(error)}") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _scenario(plan: Plan, started: Started, settings: Settings, model: str, folder: Path, rows: Rows) -> Scenario:
    title = f"{started.title} · {plan.checkpoint.path.name}"
    return from_folder(
        Scenario(
            name=plan.run.stem, title=title, question="", model=model, dtype=_weights(plan).dtype,
            dataset=str(folder / "prompts.jsonl"), reward=list(plan.rewards), chat_template_kwargs=rows.template,
            settings=msgspec.structs.asdict(settings), seed=max(0, started.seed), max_updates=plan.updates,
            eval_every=0, made_before=plan.update,
        ),
        Path.cwd(),
    )  # fmt: skip


def _policy(state: State) -> dict[str, torch.Tensor]:
    """The trained parameters of the policy, in the order of the model."""
    return {name: p for name, p in state.parameters.items() if name.startswith(POLICY)}


@torch.no_grad()
def _put_weights(plan: Plan, state: State) -> None:
    """Give the policy the checkpoint's weights. Raises ValueError, one line, if it has others than the reference."""
    if plan.checkpoint.base:
        put_adapters(state.lm.policy, plan.checkpoint.path)
        return
    loaded, _ = load_pretrained(str(plan.checkpoint.path), weights=_weights(plan))
    theirs, own = dict(loaded.named_parameters()), dict(state.lm.policy.named_parameters())
    if [(n, p.shape) for n, p in theirs.items()] != [(n, p.shape) for n, p in own.items()]:
        raise ValueError(f"{plan.checkpoint.path.name} is of another model than the reference {plan.model}")
    for name, parameter in own.items():
        parameter.copy_(theirs[name])


def _put_moments(by_name: Any, state: State) -> None:
    """Give the optimizer the moments, in float32 where the weights are in bfloat16, with masters then."""
    for name, moments in by_name.items():
        parameter = state.parameters[name]
        halved = parameter.dtype == torch.bfloat16
        dtype = torch.float32 if halved else parameter.dtype
        kept = {key: moments[key].to(parameter.device, dtype, copy=True) for key in ("exp_avg", "exp_avg_sq")}
        kept["step"] = moments["step"].reshape(()).to(parameter.device, torch.float32, copy=True)
        state.optimizer.state[parameter] = kept | ({"master": parameter.detach().float().clone()} if halved else {})


def _at(reader: RunReader, update: int) -> dict[str, float]:
    """The metrics of an update."""
    return next((metrics for number, metrics in reader.metrics() if number == update), {})


def _compared(plan: Plan, reader: RunReader, state: State, template: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What the rebuilt state makes of the answers of the next update, if they are on record."""
    following = plan.update + 1
    if following not in reader.detailed():
        return [], []
    update = reader.load(following)
    examples = [example_of(each, state.lm.tokenizer, template) for each in prompts_of(update, given=False)]
    known = [each for each in examples if each is not None]
    return compared(state, update, known if len(known) == len(examples) else None)


def _write(plan: Plan, reader: RunReader, out: Path, started: Started, settings: Settings) -> None:
    """The run file: what was recorded until the checkpoint, then the settings that differ from there on."""
    begun = msgspec.structs.asdict(decoded(reader.started.settings))
    branch(plan.run, plan.update, out, begun=msgspec.structs.replace(started, settings=begun, run_id=uuid.uuid4().hex))
    before = decoded(reader.timeline().at(plan.update + 1, "sample"))
    with closing(RunWriter.reopen(out)) as writer:
        for name, value in msgspec.structs.asdict(settings).items():
            if (previous := getattr(before, name)) != value:
                change = {"name": name, "value": value, "previous": previous}
                writer.append(Changed(update=plan.update + 1, phase="sample", **change))


def _keep(out: Path, state: State, run_plan: RunPlan) -> None:
    """The snapshot to go on from."""
    with closing(RunWriter.reopen(out)) as writer:
        SnapshotStore(writer, out, run_plan.stages).keep(state, always=True)
