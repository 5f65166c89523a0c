"""What a change of settings would do to each token: which differences are counted, and what is noise."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rlplay.trace.questions import Imagined
from rlplay.trace.records import Credited, Stepped
from rlplay.trace.update import Update
from rlplay.ui.session.as_it_would_be import WhatIfResult, held_back, what_if_result
from tests.recorded import synthetic_update
from tests.ui.stage import CHOSEN
from tests.written import sampled_of, update_with

TOKENS = 8
TEMPLATE = synthetic_update(1)


def step(gradients: list[float], clipped: list[int] | None = None) -> Stepped:
    """One optimizer step over one answer."""
    record = next(record for record in TEMPLATE if isinstance(record, Stepped))
    zeros = np.zeros(TOKENS, dtype=np.float32)
    return msgspec.structs.replace(
        record, rows=np.zeros(1, dtype=np.int32), logprobs=zeros, importance_ratio=zeros, values=None, kl=None,
        dloss_dlogp=np.array(gradients), clip_state=np.isin(np.arange(TOKENS), clipped or []).astype(np.int8),
        dkl_dlogp=None, weights=None, left_out=None,
    )  # fmt: skip


def credited(advantage: float) -> Credited:
    record = next(record for record in TEMPLATE if isinstance(record, Credited))
    flat = np.full(TOKENS, advantage, dtype=np.float32)
    return msgspec.structs.replace(
        record,
        advantages=flat,
        token_rewards=flat,
        returns=flat,
        baseline=flat,
        ref_logprobs=flat,
        ref_top_logprobs=None,
    )


def result(
    before: Stepped, after: Stepped, mask: list[int] | None = None, **fields: object
) -> tuple[Update, WhatIfResult]:
    sampled = sampled_of(["a"] * TOKENS, mask=np.array(mask or [1] * TOKENS, dtype=np.uint8))
    update = update_with(sampled, credited(1.0))
    given = {"settings": CHOSEN, "credited": credited(2.0), "losses": (0.5, 0.25)} | fields
    answer = Imagined({}, 1, before=[before], after=[after], **given)
    return update, what_if_result(update, answer)


@pytest.mark.parametrize(
    ("old", "new", "was", "will", "words"),
    [
        ([1, -1, 1], [-1, 1, 1], [], [], "2 would get a reversed gradient (±)"),
        ([1, 0, 0], [1, 2, 0], [1, 2], [2], "1 would no longer be clipped"),
        ([1, 1, 1], [1, 0, 0], [], [1, 2], "2 would be clipped"),
        ([1, 1, 1], [1, 0, 1], [], [], "1 would no longer get a gradient"),
        ([1, 0, 0], [1, 3, -1], [], [], "2 would newly get a gradient"),
        ([1, -1, 1], [2, -2, 1], [], [], "2 would get a larger gradient"),
        ([1, -1, 1], [0.5, -0.5, 1], [], [], "2 would get a smaller gradient"),
        ([1, -1, 1], [1 + 9e-6, -1 - 9e-6, 1 - 9e-6], [], [], "none would get a different gradient"),
        ([1, 9e-6, 0], [1, 0, -9e-6], [], [], "none would get a different gradient"),
        ([-1, 1, 1], [0, 1, 1], [], [], "1 would no longer get a gradient"),
        ([1, 0, 1], [1, 2, -1], [], [], "1 would get a reversed gradient (±), 1 would newly get a gradient"),
    ],
)
def test_differences_are_counted(
    old: list[float], new: list[float], was: list[int], will: list[int], words: str
) -> None:
    rest = [1.0] * (TOKENS - 3)
    for scale in (1, 1e3, 1e-3):  # what is noise is told by the largest gradient
        before, after = ([each * scale for each in [*some, *rest]] for some in (old, new))
        _, found = result(step(before, was), step(after, will))
        assert found.words[0] == f"Of these {TOKENS} tokens, {words}."
    turned = [a * b < 0 and min(abs(a), abs(b)) > 1e-5 for a, b in zip(old, new, strict=True)]
    assert found.flipped.tolist() == turned + [False] * (TOKENS - 3)


def test_only_sampled_tokens_count() -> None:
    _, found = result(step([1] * TOKENS), step([-1] * TOKENS), mask=[0, 0, *[1] * 6])
    assert found.words[0] == "Of these 6 tokens, 6 would get a reversed gradient (±)."
    assert found.flipped.tolist() == [False, False, *[True] * 6]


def test_how_strong_the_gradients_are_and_what_acts_later() -> None:
    _, found = result(step([1, -1, *[0] * 6]), step([3, 0, *[0] * 6]), held=["temperature"])
    assert found.words[1:] == [
        "Σ|∂L/∂ℓ| 2 → 3 · L 0.5 → 0.25", "temperature leaves these gradients as they are and acts after them.",
    ]  # fmt: skip
    assert len(result(step([1] * TOKENS), step([1] * TOKENS), losses=None)[1].words) == 1
    assert held_back(["a", "b"]) == "a, b leave these gradients as they are and act after them."


def test_both_updates_keep_what_does_not_change() -> None:
    update, found = result(step([1] * TOKENS), step([2] * TOKENS))
    for side in (found.before, found.after):
        assert (side.number, side.step_word, side.sampled, side.scored) == (1, "token", update.sampled, update.scored)
        assert side.finished is None
    assert found.before.credited is update.credited
    assert found.after.credited is not None
    assert update.credited is not None
    assert found.after.credited.ref_logprobs is update.credited.ref_logprobs
    assert found.after.credited.advantages[0] == 2.0
    assert found.after.steps[0].dloss_dlogp[0] == 2
