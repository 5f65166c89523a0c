"""A held-out answer as a target: records have its words, and the run's tokenizer gives their tokens."""

from __future__ import annotations

from rlplay.engine.probe import Beginning
from rlplay.engine.state import State
from rlplay.trace.questions import Prefix
from rlplay.trace.records import Evaluated
from rlplay.trace.targets import whole_text_target
from rlplay.trace.teachers import Target


def held_out_target(held_out: Evaluated, index: int, state: State) -> Target:
    """All tokens of a held-out answer, without the one that ended it, which is not on record.

    Raises ValueError, one line, if there is no such answer, or an environment wrote a part of it.
    """
    count = len(held_out.completions)
    if not 0 <= index < count:
        raise ValueError(f"there are {count} held-out answers, counted from 0; there is no {index}")
    if state.task.environment is not None:
        raise ValueError("held-out answers of this task hold what an environment wrote; choose one of an update")
    columns = held_out.columns[index] if held_out.columns else None
    beginning = Beginning.of(Prefix(held_out.prompts[index], columns=columns), state)
    ids = state.lm.tokenizer(held_out.completions[index], add_special_tokens=False)["input_ids"]
    return whole_text_target(beginning.prompt_ids, ids)
