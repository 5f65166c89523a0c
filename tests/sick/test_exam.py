"""The causes of sick runs that no check was tuned on are named first, and runs of many kinds are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [3, 4])
def test_the_examination_is_passed(seed: int, tmp_path: Path) -> None:
    from tests.sick.exam import ALARM, RIGHT, VOID, counts, rows, sat
    from tests.sick.questions import QUESTIONS
    from tests.sick.trial import TRIAL

    answers = list(sat(tmp_path, seed))
    found = counts(answers)
    missed = "\n".join(line for answer in answers if answer.mark != RIGHT for line in rows(answer))
    assert not [answer.case.name for answer in answers if answer.mark == VOID], "a sabotage had no effect"
    assert found["questions"] >= len(QUESTIONS) - 2, missed
    assert found["trial"] >= len(TRIAL) - 3, missed
    assert not [answer.case.name for answer in answers if answer.mark == ALARM], missed
    assert not [tick for answer in answers for tick in answer.reassures]
