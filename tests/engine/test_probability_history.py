"""How likely tokens were in the course of a run: the numbers of the models as they were then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from rlplay.engine.snapshots import SnapshotStore
from rlplay.trace.codec import RECORDS
from rlplay.trace.questions import Peek, Prefix, Recall, Recalled
from rlplay.trace.records import Credited, Stepped
from tests.engine.test_probe import ASKED, Start, ask, never, plain_logits

PLACE = Prefix(ASKED, [70])
TOKENS = [70, 71, 9]


def test_they_are_those_of_the_models_as_they_were(start: Start, micro_model: Path, tmp_path: Path) -> None:
    driver, _ = start(learning_rate=2e-2, temperature=0.7)
    expected = [(plain_logits(micro_model, ASKED, [70])[-1] / 0.7).softmax(-1).numpy()[TOKENS]]
    for update in range(1, 4):
        driver.advance("update", 1, never)
        folder = tmp_path / str(update)
        driver._state.lm.policy.save_pretrained(folder)
        AutoTokenizer.from_pretrained(micro_model).save_pretrained(folder)
        expected.append((plain_logits(folder, ASKED, [70])[-1] / 0.7).softmax(-1).numpy()[TOKENS])
    recalled = ask(driver, Recall(PLACE, TOKENS))
    assert recalled.updates == [0, 1, 2, 3]
    np.testing.assert_allclose(recalled.probabilities, expected, rtol=1e-3, atol=1e-7)
    assert np.ptp(recalled.probabilities, axis=0).max() > 1e-3, "training moved them"
    later = ask(driver, Recall(PLACE, TOKENS, since=2))
    assert (later.updates, later.probabilities) == ([2, 3], recalled.probabilities[2:])


def test_they_come_one_update_after_another_until_something_else_is_asked(start: Start) -> None:
    driver, _ = start()
    driver.advance("update", 3, never)
    answers = list(driver.probe(Recall(PLACE, TOKENS), never))
    assert [len(answer.updates) for answer in answers if isinstance(answer, Recalled)] == [1, 2, 3, 4, 4]
    assert [answer.done for answer in answers if isinstance(answer, Recalled)] == [False] * 4 + [True]
    asked = iter([False, False, True])
    *_, last = driver.probe(Recall(PLACE, TOKENS), lambda: next(asked))
    assert isinstance(last, Recalled)
    assert (last.updates, last.done) == ([0, 1], True)


def test_the_run_does_not_notice(start: Start) -> None:
    def played(recalls: bool) -> list[bytes]:
        driver, records = start(f"{recalls}.rlplay", learning_rate=2e-2)
        for _ in range(2):
            driver.advance("update", 1, never)
            if recalls:
                ask(driver, Recall(PLACE, TOKENS))
        driver.advance("update", 1, never)
        return [RECORDS.encode(record) for record in records if isinstance(record, Credited | Stepped)]

    assert played(recalls=True) == played(recalls=False)


def test_without_a_snapshot_the_policy_itself_answers_for_the_last_update(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SnapshotStore, "begin", lambda *_, **__: None)
    driver, _ = start(learning_rate=2e-2)
    driver.advance("update", 2, never)
    recalled = ask(driver, Recall(PLACE, TOKENS))
    assert recalled.updates == [0, 2]
    peeked = ask(driver, Peek(PLACE))
    shares = dict(zip(peeked.top_ids, peeked.top, strict=True))
    best = peeked.top_ids[0]
    assert ask(driver, Recall(PLACE, [best])).probabilities[-1] == pytest.approx([shares[best]], abs=1e-6)


def test_a_damaged_snapshot_and_an_unknown_token_are_refused_in_a_line(start: Start) -> None:
    driver, _ = start()
    driver.advance("update", 1, never)
    with pytest.raises(ValueError, match="outside the model's vocabulary"):
        ask(driver, Recall(PLACE, [10**6]))
    driver._store.path(1).write_bytes(b"no weights")
    with pytest.raises(ValueError, match="cannot be read"):
        ask(driver, Recall(PLACE, TOKENS))
