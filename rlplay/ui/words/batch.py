"""What the updates of a scenario are made of, in a sentence, before anything runs."""

from __future__ import annotations

from rlplay.algorithms import named
from rlplay.scenario.schema import Scenario
from rlplay.scenario.stage_settings import stage_settings


def batch(scenario: Scenario) -> str:
    """How many prompts and answers each update has, and how it learns; of several stages, only how they learn."""
    stages = stage_settings(scenario)
    learns = ", then ".join(dict.fromkeys(named.title(settings.algorithm) for settings in stages))
    learns = f"{learns}, at most {_count(scenario.max_updates, 'update')}."
    if len(stages) > 1:
        return learns
    (settings,) = stages
    prompts, answers = settings.num_prompts, settings.num_generations
    if scenario.world is not None:
        what = _count(prompts * answers, "episode")
    elif settings.kind == "imitation":
        what = f"{_count(prompts, 'prompt')} with given answers"
    elif settings.rewarded:
        what = f"{_count(prompts, 'prompt')}, {_count(answers, 'answer')} to each"
    else:
        what = f"{_count(prompts, 'prompt')}, two answers to each"
    return f"Each update: {what}. {learns}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"
