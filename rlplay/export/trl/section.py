"""One stage of a run as a section of the script: its rows, its trainer, and where it saves its model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rlplay.algorithms.named import title
from rlplay.algorithms.own_choices import names_file
from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.algorithms.settings import REWARD_MODEL, Settings
from rlplay.algorithms.trl_verl import trainer_of
from rlplay.export.trl.answer_configs import answer_fields
from rlplay.export.trl.data import gold_names
from rlplay.export.trl.fields import Field, absolute_entry, config_lines, literal, note, plain
from rlplay.export.trl.policy_configs import policy_fields
from rlplay.export.trl.recorded_stages import PlayedStage
from rlplay.scenario.schema import Scenario
from rlplay.trace.numbers import compact


@dataclass
class RunFacts:
    """The run's scenario, its device, whether it answered held-out prompts, the names of the reward functions
    of the stage at hand, and where its reward model is saved."""

    scenario: Scenario
    on_cpu: bool
    evaluated: bool
    rewards: list[str] = field(default_factory=list)
    reward_model: str = ""


def section_lines(stage: PlayedStage, facts: RunFacts, model: str, place: str) -> Iterator[str]:
    """The lines of a section that trains `model` and saves it at `place`; both are Python expressions in the script."""
    kind, _ = trainer_of(stage.settings) or ("", "")
    named = f"Stage {plain(stage.name)}: " if stage.name else ""
    algorithm = stage.settings.algorithm  # where a run names a file, it may be any file
    yield f"# {named}{plain(Path(algorithm).stem if names_file('algorithm', algorithm) else title(algorithm))}"
    yield from map(note, stage.changed)
    yield from _rows(stage)
    if _evaluates(stage, facts):
        yield f"held_out = for_trl.held_out(task, most={facts.scenario.eval_prompts})"
    rewards = _rewards(stage.settings, facts) if stage.settings.loss_type == "policy_gradient" else {}
    yield f"trainer = {kind}("
    yield f"    model={model},"
    if stage.settings.loss_type == "policy_gradient":
        yield f"    reward_funcs=[{', '.join(rewards)}],"
    yield from _tools(stage.settings, facts.scenario)
    yield "    train_dataset=Dataset.from_list(rows),"
    if _evaluates(stage, facts):
        yield "    eval_dataset=Dataset.from_list(held_out),"
    if kind == "CPOTrainer":
        yield f"    processing_class=AutoTokenizer.from_pretrained({model}),"
    yield f"    args={kind.replace('Trainer', 'Config')}("
    yield from (f"        {field}" for field in _fields(stage, facts, place, list(rewards.values())))
    yield "    ),"
    yield from _adapters(facts.scenario)
    yield ")"
    yield "trainer.train()"
    yield f"trainer.save_model(str({place}))"


def _fields(stage: PlayedStage, facts: RunFacts, place: str, weights: list[float]) -> Iterator[Field]:
    yield from _length(stage, place)
    if stage.settings.loss_type == "policy_gradient":
        yield from policy_fields(stage.settings, weights)
        yield from config_lines({"chat_template_kwargs": facts.scenario.chat_template_kwargs or None})
    else:
        if facts.scenario.chat_template_kwargs:
            yield note("the run's chat_template_kwargs have no counterpart in this trainer")
        yield from answer_fields(stage.settings, stage.recorded is not None)
    yield from _common(stage.settings, facts)
    yield from _evaluation(stage, facts)


def _tools(settings: Settings, scenario: Scenario) -> Iterator[str]:
    """The arguments of a trainer that samples for what the model may call."""
    if settings.loss_type != "policy_gradient":
        return
    if scenario.tools:
        functions = (f"load_function({literal(absolute_entry(entry))})" for entry in scenario.tools)
        yield f"    tools=[{', '.join(functions)}],"
    if (factory := scenario.environment_factory) is None:
        return
    weight = settings.reward_weights.get(factory.rpartition(":")[2], 1.0 if not settings.reward_weights else 0.0)
    if weight != 1:
        said = note(f"the environment's own reward has weight {compact(weight)} in the run, and 1 in TRL")
        yield f"    {said}"
    yield f"    environment_factory=load_function({literal(absolute_entry(factory))}),"


def _adapters(scenario: Scenario) -> Iterator[str]:
    """The argument of a trainer for LoRA, with the values that the run had."""
    if not scenario.use_peft:
        return
    wanted = scenario.lora_target_modules
    modules = wanted[0] if wanted == ["all-linear"] else wanted or None
    yield "    peft_config=LoraConfig("
    yield f'        r={scenario.lora_r}, lora_alpha={scenario.lora_alpha}, lora_dropout=0.0, task_type="CAUSAL_LM",'
    yield f"        target_modules={literal(modules)},"
    yield "    ),"


def _evaluates(stage: PlayedStage, facts: RunFacts) -> bool:
    """Whether the section answers held-out prompts; only a trainer that samples can."""
    return facts.evaluated and stage.settings.loss_type == "policy_gradient"


def _rows(stage: PlayedStage) -> Iterator[str]:
    settings = stage.settings
    if stage.recorded is None:
        plan = "" if stage.updates == stage.planned else f"; its scenario plans {stage.planned}"
        yield f"updates = {stage.updates}  # as many as in the run{plan}"
    if settings.loss_type == "policy_gradient":
        yield f"rows = for_trl.prompts(task, least={settings.num_prompts})"
    elif stage.recorded is None:
        yield f"rows = for_trl.given_answers(task, least={settings.num_prompts})"
    else:
        yield note(f"TRL neither samples nor labels pairs: these {stage.recorded} are from the run{stage.thinned}")
        yield f"rows = for_trl.recorded_answers(RUN, task, first={stage.first}, last={stage.last})"
    if settings.kind == "imitation":
        yield "rows = for_trl.imitated(rows)"
    if settings.loss_type in PAIR_LOSSES and PAIR_LOSSES[settings.loss_type].alone:
        yield f"rows = for_trl.one_by_one(rows, pairs_at_once={settings.num_prompts // settings.num_minibatches})"


def _rewards(settings: Settings, facts: RunFacts) -> dict[str, float]:
    """The reward functions as Python expressions in the script, with their weights."""
    found = {name: f"for_trl.summed(rewards[{literal(name)}])" for name in facts.rewards}
    if facts.reward_model:
        found[REWARD_MODEL] = facts.reward_model
    wanted = settings.reward_weights or dict.fromkeys(found, 1.0)
    for name in gold_names(facts.scenario):
        found.setdefault(name, f"for_trl.summed(task.gold[{literal(name)}])")
    weights = {function: float(wanted[name]) for name, function in found.items() if wanted.get(name)}
    if settings.overlong_buffer:
        longest = settings.max_completion_length
        weights[f"get_soft_overlong_punishment({longest}, {min(settings.overlong_buffer, longest)})"] = 1.0
    return weights


def _length(stage: PlayedStage, place: str) -> Iterator[Field]:
    settings = stage.settings
    yield f"output_dir=str({place}),"
    yield "seed=SEED,"
    iterations = settings.num_iterations if settings.loss_type == "policy_gradient" else 1
    steps = iterations * settings.num_minibatches
    if stage.recorded is not None:
        yield "num_train_epochs=1,"
    else:
        yield "max_steps=updates," if steps == 1 else f"max_steps=updates * {steps},  # optimizer steps of an update"


def _common(settings: Settings, facts: RunFacts) -> Iterator[Field]:
    yield from config_lines({"learning_rate": settings.learning_rate,
                      "lr_scheduler_type": settings.lr_scheduler_type, "warmup_steps": settings.warmup_steps or None,
                      "weight_decay": settings.weight_decay or None,
                      "max_grad_norm": settings.max_grad_norm})  # fmt: skip
    if settings.sync_ref_model:
        yield from _moving_reference(settings)
    if facts.scenario.dtype == "bfloat16":
        yield from config_lines({"model_init_kwargs": {"dtype": "bfloat16"}})
        yield note("the optimizer has float32 copies of the weights in rlplay; here it changes the bfloat16 weights")
    yield from config_lines({"bf16": False, "gradient_checkpointing": settings.gradient_checkpointing})
    if not facts.on_cpu:  # where both change nothing, and TRL refuses tf32
        asked = {name: getattr(facts.scenario, name) or None for name in ("tf32", "full_determinism")}
        yield from config_lines(asked)
    if facts.on_cpu:
        yield "use_cpu=True,  # as in the run"
    yield from config_lines({"logging_steps": 1, "save_strategy": "no", "report_to": "none"})


def _moving_reference(settings: Settings) -> Iterator[Field]:
    if (kind := (trainer_of(settings) or ("", ""))[0]) in ("CPOTrainer", "SFTTrainer", "RewardTrainer"):
        yield note(f"sync_ref_model has no counterpart in TRL's {kind}, which has no reference")
        return
    names = ("sync_ref_model", "ref_model_mixup_alpha", "ref_model_sync_steps")
    yield from config_lines({name: getattr(settings, name) for name in names})


def _evaluation(stage: PlayedStage, facts: RunFacts) -> Iterator[Field]:
    scenario, settings = facts.scenario, stage.settings
    if _evaluates(stage, facts):
        steps = scenario.eval_every * settings.num_iterations * settings.num_minibatches
        yield from config_lines({"eval_strategy": "steps", "eval_steps": steps, "eval_on_start": stage.first == 1,
                          "num_generations_eval": scenario.eval_generations})  # fmt: skip
        yield f"per_device_eval_batch_size=len(held_out) * {scenario.eval_generations},"
    elif facts.evaluated:
        yield note(f"held-out answers every {scenario.eval_every} updates are left out: this trainer does not sample")
