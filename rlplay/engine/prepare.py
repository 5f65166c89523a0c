"""From a job to everything training needs: device, model, task, settings, plan."""

from __future__ import annotations

import copy
import os
import platform
import uuid
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import msgspec
import torch

from rlplay.algorithms.settings import Settings
from rlplay.engine import onednn, ranks
from rlplay.engine.agreement import settle
from rlplay.engine.arithmetic import chosen_dtype, compute_as
from rlplay.engine.distillation.context import CONTEXT, PROMPT, lacking
from rlplay.engine.distillation.load_teacher import load_teacher
from rlplay.engine.estimate import warns
from rlplay.engine.fit import check_fit, check_settings
from rlplay.engine.freed_memory import keep_freed_memory
from rlplay.engine.model import LanguageModel, choose_device, load_model, set_threads, wrap
from rlplay.engine.own_functions import allow_functions
from rlplay.engine.stages import RunStage, stages_of
from rlplay.engine.state import RunPlan, State, Teaching
from rlplay.engine.tool_calls import offer
from rlplay.engine.weights import Weights
from rlplay.engine.world_policy import world_policy
from rlplay.processes import cores, in_several, is_one_alone
from rlplay.scenario.load_plugins import join
from rlplay.scenario.scenario_task import tasks_for
from rlplay.scenario.scenario_world import world_of
from rlplay.scenario.schema import Job, Scenario
from rlplay.tasks.stories import remembered
from rlplay.tasks.task import Task
from rlplay.tasks.tools import Tools
from rlplay.trace.records import Started
from rlplay.version import __version__

Progress = Callable[[str, float], None]


def prepare(job: Job, progress: Progress) -> tuple[State, RunPlan, Started]:
    """Load what the job names. Raises ValueError, one line, if it is not there or does not fit together."""
    if in_several() and ranks.count() == 1:
        raise ValueError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but only 'rlplay run' trains in several processes; "
            "start this without a launcher"
        )
    join()
    scenario, stages = job.scenario, stages_of(job.scenario)
    for stage in stages:
        allow_functions(stage.settings)
    device = choose_device(job.device)
    threads = set_threads(job.threads)  # only now: accelerate sets a number, too
    keep_freed_memory()
    compute_as(scenario, device)
    dtype, chosen = chosen_dtype(scenario, device)
    scenario = msgspec.structs.replace(scenario, dtype=dtype)
    tasks = tasks_for(scenario, lambda what: progress(what, 0.4))
    world = world_of(scenario)
    if world is None:
        lm = _language_model(scenario, stages[0].settings, device, Path(job.run), progress)
        lm.remarks += [chosen] if chosen else []
    else:
        lm = wrap(*world_policy(world, scenario.model, scenario.seed), device)
    _fit_together(lm, scenario, stages, tasks, progress)
    if ranks.count() > 1:
        lm.remarks.append(
            f"{ranks.count()} processes train this run together, each with {threads} CPU "
            f"{'thread' if threads == 1 else 'threads'} and a share of the answers"
        )
    if is_one_alone():
        lm.remarks.append(
            "accelerate launch was asked for several processes and has started one, which trains alone; with "
            "--multi_gpu and without --cpu it starts all, on a CPU too, as do torchrun and rlplay run --processes"
        )
    lm.run_as(stages[0].settings)
    for stage in stages:
        check_settings(stage.settings, lm, world)
    state = State.fresh(lm, tasks[0], stages[0].settings)
    state.tasks = tasks
    state.world = state.plain_world = world
    state.stages = stages
    state.teaching = _teaching(scenario, lm, stages, tasks, progress)
    return state, _plan(scenario, stages, tasks), _started(scenario, stages[0].settings, lm, device, threads)


def _language_model(
    scenario: Scenario, settings: Settings, device: torch.device, run: Path, progress: Progress
) -> LanguageModel:
    """Load the model; what an estimate says of its memory is among its remarks."""
    weights, short = Weights.of(scenario), list[str]()

    def say(what: str) -> None:
        short.append(what)
        progress(what, 0.5)

    first = warns(weights, settings, device, run, say)
    lm = load_model(scenario.model, device, lambda what: progress(what, 0.5), weights, first)
    lm.remarks += short
    return lm


def _fit_together(
    lm: LanguageModel, scenario: Scenario, stages: list[RunStage], tasks: list[Task], progress: Progress
) -> None:
    """Give the model what the tasks bring, and check that it can work with them. Raises ValueError, one line."""
    lm.chat_template_kwargs = scenario.chat_template_kwargs
    if ranks.count() > 1 and any(isinstance(each.environment, Tools) for each in tasks):
        raise ValueError("tools and environment_factory run in one process; leave --processes out")
    if isinstance(tasks[0].environment, Tools):
        offer(lm, tasks[0].environment)
    progress("checking that model and prompts fit", 0.7)
    for stage, task in zip(stages, tasks, strict=True):
        check_fit(lm, task, stage.settings.max_completion_length)
    progress("checking the model's numbers", 0.8)
    settle(lm)


def _teaching(
    scenario: Scenario, lm: LanguageModel, stages: list[RunStage], tasks: list[Task], progress: Progress
) -> Teaching:
    """The scenario's teacher, and what a teacher reads. Raises ValueError, one line, if they do not fit."""
    template, column = scenario.teacher_prompt_template, scenario.privileged_context
    if missing := [each for each in (PROMPT, CONTEXT) if each not in template]:
        raise ValueError(f"teacher_prompt_template lacks {missing[0]}, as in {PROMPT} The answer is {CONTEXT}.")
    for stage, task in zip(stages, tasks, strict=True):
        reads = stage.settings.distils and stage.settings.teacher_context == "dataset"
        if reads and (problem := lacking(task.train, column)):
            raise ValueError(problem)
    if any(stage.restart for stage in stages):
        if scenario.teacher is not None or scenario.world is not None or stages[0].restart:
            raise ValueError(
                "restart is for a later stage of a run without teacher and world: it brings its own teacher"
            )
        begun = {name: p.detach().clone() for name, p in lm.policy.named_parameters() if p.requires_grad}
        frozen = copy.deepcopy(lm.policy).requires_grad_(False)
        return Teaching(replace(lm, policy=frozen, reference=frozen, remarks=[]), template, column, begun)
    if scenario.teacher is None:
        return Teaching(None, template, column)
    model = load_teacher(scenario.teacher, lm, Weights.of(scenario), lambda what: progress(what, 0.9))
    return Teaching(model, template, column)


def _plan(scenario: Scenario, stages: list[RunStage], tasks: list[Task]) -> RunPlan:
    return RunPlan(
        seed=scenario.seed,
        stages=stages,
        max_updates=scenario.max_updates,
        eval_every=scenario.eval_every if any(each.held_out for each in tasks) else 0,
        eval_prompts=scenario.eval_prompts,
        eval_generations=scenario.eval_generations,
        remembered=remembered() if scenario.model == "pocket" else [],
    )


def _started(scenario: Scenario, settings: Settings, lm: LanguageModel, device: torch.device, threads: int) -> Started:
    return Started(
        update=0,
        run_id=uuid.uuid4().hex,
        scenario=scenario.name,
        scenario_text=msgspec.yaml.encode(scenario).decode(),
        title=scenario.title,
        settings=msgspec.structs.asdict(settings),
        seed=scenario.seed,
        model=scenario.model,
        parameters=sum(p.numel() for p in lm.policy.parameters()),
        device=str(device),
        dtype=scenario.dtype,
        threads=threads,
        versions={
            "rlplay": __version__,
            "torch": str(torch.__version__),
            "transformers": version("transformers"),
            "python": platform.python_version(),
            **({"products": "oneDNN"} if lm.device.type == "cpu" and onednn.is_faster() else {}),
        },
        processes=ranks.count(),
        cores=cores(),
        ends={token: lm.piece(token) for token in sorted(lm.end_ids)},
    )
