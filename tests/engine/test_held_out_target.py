"""Held-out answers as targets."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from rlplay.engine.driver import Driver
from rlplay.trace.records import AnyRecord, Evaluated

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


def test_a_held_out_answer_has_the_prompt_that_the_model_reads(start: Start) -> None:
    driver, records = start(eval_every=1)
    driver.advance("update", 1, lambda: False)
    held_out = next(record for record in records if isinstance(record, Evaluated))
    lm = driver._state.lm
    example = driver._state.task.held_out[1]
    held_out = msgspec.structs.replace(held_out, completions=["3 apples", "5 pears", *held_out.completions[2:]])
    target = driver.held_out_target(held_out, 1)
    assert target.prompt_ids == lm.prompt_ids(example)
    assert lm.decode(target.answer_ids) == "5 pears"
    assert target.places == list(range(len(target.answer_ids)))
    for index in (-1, len(held_out.completions)):
        with pytest.raises(ValueError, match="held-out answers, counted from 0"):
            driver.held_out_target(held_out, index)
    driver.close()
