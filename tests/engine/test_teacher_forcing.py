"""Answers that are given: in the user's file, plain or chat, or by the task, and what training makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlplay.cli import main as cli
from rlplay.containment import OwnError
from rlplay.engine.driver import Driver
from rlplay.engine.stages import stages_of
from rlplay.export.tables import export
from rlplay.scenario.scenario_task import tasks_for
from rlplay.scenario.schema import Job, Scenario
from rlplay.tasks import load_task
from rlplay.tasks.own_prompts import load_own
from rlplay.trace.records import AnyRecord, Evaluated, Sampled, Scored, Stepped
from tests.engine.conftest import SMALL

ASKED = [{"role": "user", "content": "Hi"}]
GOOD = {"role": "assistant", "content": "Hello there."}
BAD = {"role": "assistant", "content": "No."}


def _file(folder: Path, *rows: Any) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("row", "prompt"),
    [
        ({"prompt": "Hi", "chosen": "Hello there.", "rejected": "No."}, "Hi"),
        ({"prompt": ASKED, "chosen": [GOOD], "rejected": [BAD]}, ASKED),
        ({"chosen": [*ASKED, GOOD], "rejected": [*ASKED, BAD]}, ASKED),
        ({"prompt": "Hi", "chosen": [*ASKED, GOOD], "rejected": [*ASKED, BAD]}, ASKED),
    ],
)
def test_every_preference_format_of_trl_is_read(tmp_path: Path, row: Any, prompt: Any) -> None:
    (example,) = load_own(_file(tmp_path, row), {}).train
    assert (example.prompt, example.chosen, example.rejected) == (prompt, "Hello there.", "No.")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [{"prompt": "Hi", "chosen": "a"}, {"prompt": "Hi", "chosen": "a", "rejected": "b"}],
            "row 1 has no 'rejected'",
        ),
        ([{"prompt": "Hi", "chosen": "a", "rejected": "b"}, {"prompt": "Hi"}], "row 2 has no 'chosen'"),
        ([{"prompt": "Hi", "rejected": "b"}], "row 1 has 'rejected' but no 'chosen'"),
        ([{"prompt": "Hi", "chosen": "", "rejected": "b"}], "row 1 has a 'chosen' that is neither text"),
        ([{"prompt": "Hi", "chosen": 3, "rejected": "b"}], "row 1 has a 'chosen' that is neither text"),
        ([{"prompt": "Hi", "chosen": ASKED, "rejected": ASKED}], "that end with the assistant's"),
        ([{"chosen": [*ASKED, GOOD], "rejected": [BAD]}], "a different conversation before 'chosen'"),
        ([{"prompt": "Ho", "chosen": [*ASKED, GOOD], "rejected": [*ASKED, BAD]}], "do not begin with"),
        ([{"chosen": "a", "rejected": "b"}], "row 1 has no 'prompt' column; it has chosen, rejected"),
        ([{"prompt": "Hi", "chosen": "a", "completion": "b"}], "both 'completion' and 'chosen'"),
    ],
)
def test_invalid_pairs_are_reported_in_one_line(tmp_path: Path, rows: list[Any], words: str) -> None:
    with pytest.raises(OwnError) as caught:
        load_own(_file(tmp_path, *rows), {})
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "rows.jsonl"))


@pytest.mark.parametrize(
    ("settings", "rows", "words"),
    [
        ({"algorithm": "dpo"}, [{"prompt": "Hi", "completion": "a"}], "give the columns prompt, chosen and rejected"),
        ({"algorithm": "sft"}, [{"prompt": "Hi"}], "give the columns prompt and completion"),
        ({"algorithm": "grpo"}, [{"prompt": "Hi", "chosen": "a", "rejected": "b"}], "no reward to maximise"),
    ],
)
def test_data_with_nothing_to_learn_from_is_refused(
    tmp_path: Path, settings: dict[str, Any], rows: list[Any], words: str
) -> None:
    scenario = Scenario(name="t", title="", question="", dataset=str(_file(tmp_path, *rows)), settings=settings)
    with pytest.raises(OwnError, match=words):
        tasks_for(scenario)


@pytest.fixture
def begin(micro_model: Path, tmp_path: Path) -> Callable[..., tuple[Driver, list[AnyRecord]]]:
    def make(rows: list[Any], **settings: Any) -> tuple[Driver, list[AnyRecord]]:
        scenario = Scenario(
            name="own", title="", question="", model=str(micro_model), dataset=str(_file(tmp_path, *rows)),
            settings=SMALL | settings, max_updates=3, eval_every=1,
        )  # fmt: skip
        records: list[AnyRecord] = []
        driver = Driver(Job(scenario, str(tmp_path / "run.rlplay"), device="cpu", threads=1), records.append)
        driver.load(lambda what, fraction: None)
        return driver, records

    return make


ROWS = [{"prompt": f"Say {n}", "chosen": f"It is {n}.", "rejected": "I will not, and nobody can make me do it."}
        for n in range(12)]  # fmt: skip


def test_given_pairs_are_compared_whole_or_cut_with_either_answer_first(begin: Any) -> None:
    driver, records = begin(ROWS, algorithm="dpo", num_prompts=8, max_completion_length=8)
    driver.advance("update", 2, lambda: False)
    driver.close()
    sampled = next(r for r in records if isinstance(r, Sampled))
    assert sampled.done  # nothing is sampled: there is one record of it
    scored = next(r for r in records if isinstance(r, Scored))
    text = ["".join(sampled.texts[a:b]) for a, b in zip(sampled.offsets, sampled.offsets[1:], strict=False)]
    for words, role, cut in zip(text, scored.roles, sampled.truncated, strict=True):
        assert words.startswith("It is " if role == "chosen" else "I will not")
        assert words.endswith("<|end|>") == (not cut)
        assert cut == (role == "rejected")
    firsts = [r.roles[i] for r in records if isinstance(r, Scored) for i in range(0, 16, 2)]
    assert set(firsts) == {"chosen", "rejected"}
    assert not scored.gold
    assert not any(isinstance(r, Evaluated) for r in records)  # there is nothing to score held-out answers with


def test_a_reward_model_learns_from_given_pairs_with_their_margins(begin: Any) -> None:
    rows = [row | {"margin": 1.5} for row in ROWS]
    driver, records = begin(rows, algorithm="reward-model", num_prompts=4)
    driver.advance("update", 2, lambda: False)
    driver.close()
    first = next(r for r in records if isinstance(r, Stepped))
    assert first.metrics["loss"] == pytest.approx(-np.log(1 / (1 + np.exp(1.5))), abs=1e-5)
    assert [r for r in records if isinstance(r, Evaluated)][-1].update == 2  # now there is a score


def test_demonstrations_are_imitated_and_compared_with_nothing(begin: Any) -> None:
    driver, records = begin([{"prompt": row["prompt"], "completion": row["chosen"]} for row in ROWS], algorithm="sft")
    driver.advance("update", 1, lambda: False)
    driver.close()
    sampled, scored = (next(r for r in records if isinstance(r, kind)) for kind in (Sampled, Scored))
    assert sampled.group.tolist() == [0, 1, 2]
    assert scored.roles == ["chosen"] * 3
    step = next(r for r in records if isinstance(r, Stepped))
    assert step.metrics["loss"] == pytest.approx(-step.logprobs.mean(), abs=1e-5)
    np.testing.assert_allclose(step.dloss_dlogp, -1 / len(step.logprobs), rtol=1e-5)
    assert "logps/rejected" not in step.metrics


def test_the_questions_come_with_a_helpful_answer_to_imitate() -> None:
    task = load_task("questions")
    answers = [example.chosen for example in [*task.train, *task.held_out]]
    assert all(answers)
    scores = task.gold["helpful"](
        [], [str(a) for a in answers], keywords=[e.columns["keywords"] for e in [*task.train, *task.held_out]]
    )
    assert min(s for s in scores if s is not None) > 0.6


def test_own_pairs_are_played_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "--dataset", str(_file(tmp_path, *ROWS)), "--updates", "1", "--algorithm", "dpo", "--json"]
    with pytest.raises(SystemExit) as left:
        cli.main([*arguments, "--device", "cpu", "--out", str(tmp_path / "run.rlplay")])
    printed = capsys.readouterr()
    assert left.value.code == 0, printed.err
    assert "rewards/margins" in json.loads(printed.out.splitlines()[0])["metrics"]


def test_pairs_are_exported_with_their_roles_margins_and_implicit_rewards(begin: Any, tmp_path: Path) -> None:
    driver, _ = begin(ROWS, algorithm="dpo", num_prompts=3)
    driver.advance("update", 2, lambda: False)
    driver.close()
    export(tmp_path / "run.rlplay", "npz", tmp_path / "out.npz", 2)
    export(tmp_path / "run.rlplay", "jsonl", tmp_path / "out.jsonl", 2)
    arrays = np.load(tmp_path / "out.npz")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["role"] for line in lines] == arrays["roles"].tolist()
    totals = np.nansum(arrays["implicit_rewards"], axis=1)[arrays["step_0/rows"]]
    np.testing.assert_allclose(arrays["step_0/margins"], totals[:3] - totals[3:], atol=1e-5)
    assert [sum(x or 0 for x in line["implicit_rewards"]) for line in lines] == pytest.approx(
        np.nansum(arrays["implicit_rewards"], axis=1).tolist(), abs=1e-5
    )


def test_stages_come_with_the_update_they_begin_after() -> None:
    scenario = Scenario(name="t", title="", question="", task="questions")
    assert [(stage.name, stage.begins) for stage in stages_of(scenario)] == [("", 0)]
