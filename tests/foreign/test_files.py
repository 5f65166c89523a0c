"""The files that verl, prime-rl and TRL write by themselves, as runs."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from rlplay.foreign.copy import Copy
from rlplay.health.digest import digest
from rlplay.trace.lenses import LENSES
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.compat import lines_of
from rlplay.ui.knobs.knob_list import KnobList
from rlplay.ui.session.sources import ReplaySource
from tests.cli.command_line import called
from tests.foreign.grown import Row, lines, verl_rows
from tests.recorded import synthetic_run
from tests.ui.stage import home, pressed, until


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def updates_of(folder: Path) -> dict[int, Update]:
    copy = Copy(folder)
    with RunReader(copy.path) as run:
        return {number: run.load(number) for number in run.updates()}


def test_verl(tmp_path: Path) -> None:
    for step in (1, 2):
        lines(tmp_path / "rollouts" / f"{step}.jsonl", verl_rows(step))
    found = updates_of(tmp_path / "rollouts")
    assert sorted(found) == [1, 2]
    sampled, scored = found[2].sampled, found[2].scored
    assert sampled is not None
    assert scored is not None
    assert sampled.prompts == ["0+2=", "1+2="]
    assert sampled.columns == [{"gts": "2"}, {"gts": "3"}]
    assert sampled.group.tolist() == [0, 0, 1, 1]
    answers = ["".join(sampled.texts[a:b]) for a, b in zip(sampled.offsets, sampled.offsets[1:], strict=False)]
    assert answers == [row["output"] for row in verl_rows(2)]
    assert sampled.texts[:3] == ["It", " is", " 3."]
    np.testing.assert_allclose(scored.rewards, [0, 0.25, 0.5, 0.75])
    assert found[2].finished is not None
    metrics = found[2].finished.metrics
    assert metrics["reward"] == pytest.approx(0.375)
    assert metrics["gold/acc/mean"] == pytest.approx(0.5)
    assert found[2].steps == []


def test_verls_newer_rows_name_their_prompt(tmp_path: Path) -> None:
    rows = [row | {"uid": f"u{i % 2}_{i // 2}_0", "request_id": str(i), "gts": None, "input": "the same"}
            for i, row in enumerate(verl_rows(1))]  # fmt: skip
    lines(tmp_path / "rollouts" / "1.jsonl", rows)
    sampled = updates_of(tmp_path / "rollouts")[1].sampled
    assert sampled.group.tolist() == [0, 1, 0, 1]
    assert sampled.columns == [{}, {}]


@pytest.mark.parametrize("command", ["new x.yaml --from RUN", "export RUN --format trl --out x"])
def test_what_repeats_a_run_refuses_one_of_another_trainer(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "rollouts" / "1.jsonl", verl_rows(1))
    run = str(Copy(tmp_path / "rollouts").path)
    status, _, err = called(capsys, *(run if word == "RUN" else word for word in command.split()))
    assert status == 2
    assert "verl trained this run" in err
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("x")]


def test_trl_writes_texts_or_messages(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    spoken = [[{"role": "assistant", "content": text}] for text in ("a b", "c", "d", "e")]
    for step, completions in ((1, ["a b", "c", "d", "e"]), (2, spoken)):
        asked = ["p", "p", "q", "q"]
        table: Row = {
            "step": [step] * 4, "completion": completions, "correct": [1.0, 0.0, None, 1.0],
            "advantage": [0.5, -0.5, 0.0, 0.0], "answer": ["x", "x", "y", "y"],
            "prompt": asked if step == 1 else [[{"role": "user", "content": text}] for text in asked],
        }  # fmt: skip
        path = tmp_path / "out" / "completions" / f"completions_{step:05}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.table(table), path)
        os.utime(path, (1, 1))
    for update in updates_of(tmp_path / "out").values():
        assert update.sampled is not None
        assert update.scored is not None
        assert update.credited is not None
        assert update.sampled.prompts == ["p", "q"]
        assert update.sampled.texts == ["a", " b", "c", "d", "e"]
        assert update.sampled.columns[1] == {"answer": "y"}
        np.testing.assert_allclose(update.credited.advantages, [0.5, 0.5, -0.5, 0, 0])
        np.testing.assert_allclose(update.scored.parts["correct"], [1, 0, math.nan, 1])


KEPT = ("prompt", "token_ids", "token_text", "loss_mask", "inference_logprobs", "entropy", "advantages")
KEPT_TOO = ("ref_logprobs", "reward", "truncated", "group_id", "completion")


def exported(capsys: pytest.CaptureFixture[str], run: Path, out: Path) -> list[Row]:
    status, _, error = called(capsys, "export", str(run), "--format", "jsonl", "--out", str(out))
    assert status == 0, error
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("ranks", [1, 2])
def test_prime_rl_reads_what_rlplay_exports(tmp_path: Path, capsys: pytest.CaptureFixture[str], ranks: int) -> None:
    before = exported(capsys, synthetic_run(tmp_path / "a.rlplay", updates=3), tmp_path / "a.jsonl")
    for step in (1, 2, 3):
        rows = [row for row in before if row["step"] == step]
        for rank in range(ranks):
            share = rows[len(rows) * rank // ranks : len(rows) * (rank + 1) // ranks]
            lines(tmp_path / "run" / "token_exports" / f"step_{step}" / f"rank_{rank}.jsonl", share)
    after = exported(capsys, tmp_path / "run", tmp_path / "b.jsonl")
    assert len(after) == len(before) > 0
    for old, new in zip(before, after, strict=True):
        for name in (*KEPT, *KEPT_TOO):
            assert new[name] == old[name], name


def _prime_rl(step: int, is_masked: bool = True) -> list[Row]:
    """Two answers as prime-rl's newest exports have them: the sampler is one update behind."""

    def row(place: int) -> Row:
        inference, trainer = [None, -1.0, -0.5, -2.0], [-0.9, -0.7, -0.5, -1.0 - place]
        gap = [None if a is None else b - a for a, b in zip(inference, trainer, strict=True)]
        masked = [False, place == 0, False, place == 1] if is_masked else [None] * 4
        return {
            "schema_version": 1, "step": step, "token_ids": [7, 1, 2, 3], "loss_mask": [False, True, True, True],
            "advantages": [0.0, 1.0, 1.0, 1.0], "rewards": [None, 0.5, 0.5, 0.5], "inference_logprobs": inference,
            "trainer_logprobs": trainer, "entropy": [0.1, 0.2, 0.3, 0.4], "log_importance_ratio": gap,
            "importance_ratio": [None if x is None else np.exp(x) for x in gap],
            "mismatch_kl": [None if x is None else np.exp(x) - x - 1 for x in gap], "is_masked": masked,
            "is_masked_high": [x and place == 0 for x in masked], "is_masked_low": [x and place == 1 for x in masked],
        }  # fmt: skip

    return [row(0), row(1)]


def test_prime_rl_keeps_the_training_pass(tmp_path: Path) -> None:
    lines(tmp_path / "run" / "token_exports" / "step_1" / "rank_0.jsonl", _prime_rl(1))
    update = updates_of(tmp_path / "run")[1]
    (step,) = update.steps
    assert update.sampled.sampling_logprobs.tolist() == update.sampled.old_logprobs.tolist()
    assert update.sampled.sampling_logprobs.tolist() == [-1.0, -0.5, -2.0] * 2
    np.testing.assert_allclose(step.logprobs, [-0.7, -0.5, -1.0, -0.7, -0.5, -2.0])
    np.testing.assert_allclose(step.importance_ratio, np.exp([0.3, 0, 1, 0.3, 0, 0]), rtol=1e-6)
    assert step.clip_state.tolist() == [1, 0, 0, 0, 0, -1]
    assert np.isnan(step.dloss_dlogp).all()
    assert update.scored.rewards.tolist() == [0.5, 0.5]
    gaps = np.array([0.3, 0, 1, 0.3, 0, 0])
    assert update.finished.metrics["mismatch_kl/mean"] == pytest.approx(np.mean(np.exp(gaps) - gaps - 1))
    assert update.finished.metrics["is_masked/mean"] == pytest.approx(2 / 6)
    assert update.finished.metrics["clip_ratio/region_mean"] == pytest.approx(2 / 6)
    assert update.finished.metrics["clip_ratio/low_mean"] == pytest.approx(1 / 6)
    assert update.finished.metrics["entropy"] == pytest.approx(0.3)
    found = digest(update)
    assert (found.apart, found.mismatch) == (True, pytest.approx(np.mean(np.exp(gaps) - gaps - 1)))


def test_own_exports_bring_back_the_samplers_weights_and_the_teacher(tmp_path: Path) -> None:
    known = {"sampler_version": 0, "teacher_logprobs": [None, -0.25, -0.5, -3.0]}
    lines(tmp_path / "run" / "step_1" / "rank_0.jsonl", [row | known for row in _prime_rl(1)])
    update = updates_of(tmp_path / "run")[1]
    assert update.sampled.versions.tolist() == [0, 0]
    assert update.credited.teacher_logprobs.tolist() == [-0.25, -0.5, -3.0] * 2


def test_prime_rl_without_a_loss_of_its_own_knows_no_masks(tmp_path: Path) -> None:
    lines(tmp_path / "run" / "step_1" / "rank_0.jsonl", _prime_rl(1, is_masked=False))
    update = updates_of(tmp_path / "run")[1]
    assert update.steps[0].clip_state is None
    assert "is_masked/mean" not in update.finished.metrics


def test_prime_rl_without_a_training_pass_has_nothing_to_hold_its_sampler_against(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name != "trainer_logprobs"} for row in _prime_rl(1)]
    lines(tmp_path / "run" / "step_1" / "rank_0.jsonl", rows)
    update = updates_of(tmp_path / "run")[1]
    assert update.sampled.sampling_logprobs is None
    assert digest(update).mismatch is None
    assert not update.sampled.ends_known


def test_rlplays_own_export_has_no_training_pass_before_its_first_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = exported(capsys, synthetic_run(tmp_path / "a.rlplay", updates=1), tmp_path / "a.jsonl")
    lines(tmp_path / "run" / "step_1" / "rank_0.jsonl", rows)
    update = updates_of(tmp_path / "run")[1]
    assert not update.steps
    assert update.sampled.sampling_logprobs is None


def test_prime_rl_rewards_that_add_up_are_kept_apart(tmp_path: Path) -> None:
    rows = [
        {"token_ids": [1, 2], "loss_mask": [False, True], "rewards": {"a": i, "b": 0.5}, "reward": total}
        for i, total in enumerate((0.5, 1.5))
    ]
    lines(tmp_path / "both" / "step_1" / "rank_0.jsonl", rows)
    lines(tmp_path / "total" / "step_1" / "rank_0.jsonl", [{**row, "reward": 2.0} for row in rows])
    parts = {name: updates_of(tmp_path / name)[1].scored.parts for name in ("both", "total")}
    assert {name: values.tolist() for name, values in parts["both"].items()} == {"a": [0, 1], "b": [0.5, 0.5]}
    assert {name: values.tolist() for name, values in parts["total"].items()} == {"reward": [2, 2]}


def test_steps_that_count_from_0_are_all_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = exported(capsys, synthetic_run(tmp_path / "a.rlplay", updates=2), tmp_path / "a.jsonl")
    for step in (0, 1):
        lines(tmp_path / "run" / f"step_{step}" / "rank_0.jsonl", [r for r in before if r["step"] == step + 1])
    after = exported(capsys, tmp_path / "run", tmp_path / "b.jsonl")
    assert [row["completion"] for row in after] == [row["completion"] for row in before]


def test_a_folder_that_grows_is_followed_file_by_file(tmp_path: Path) -> None:
    folder = tmp_path / "rollouts"
    lines(folder / "1.jsonl", verl_rows(1))
    copy = Copy(folder)
    with RunReader(copy.path) as run:
        assert run.updates() == [1]
        lines(folder / "2.jsonl", verl_rows(2)[:1], age=0)  # still being written
        assert copy.pull() == 0
        lines(folder / "2.jsonl", verl_rows(2), age=0)
        lines(folder / "3.jsonl", verl_rows(3), age=0)
        assert copy.pull()
        assert run.updates() == [1, 2]
        assert len(run.load(2).sampled.group) == 4
        lines(folder / "3.jsonl", verl_rows(3))
        Copy(folder)
        assert run.updates() == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("1.jsonl", b'{"input": "a", "output', "1.jsonl cannot be read as a file of verl"),
        ("1.jsonl", b"[1, 2]\n", "a line is not a mapping"),
        ("1.jsonl", b'{"input": "a", "output": "b"}\n', "1.jsonl is not a file of verl: it has no 'score'"),
        ("1.jsonl", b'{"input": "a", "output": "b", "score": "high"}\n', "1.jsonl is not a file of verl"),
        ("1.jsonl", b"\xff\xfe\n", "1.jsonl cannot be read as a file of verl"),
        ("completions_00001.parquet", b"PAR1 and no more", "completions_00001.parquet cannot be read as a file of TRL"),
        ("step_1/rank_0.jsonl", b'{"prompt_len": 0}\n', "rank_0.jsonl is not a file of prime-rl: it has no"),
        ("step_1/rank_0.jsonl", b'{"prompt_len": "x", "token_ids": [1]}\n', "rank_0.jsonl is not a file of prime-rl"),
        (
            "step_1/rank_0.jsonl",
            b'{"prompt_len": 0, "token_ids": [1, 2], "loss_mask": [true, true], "advantages": [1.0]}\n',
            "rank_0.jsonl is not a file of prime-rl",
        ),
    ],
)
def test_a_broken_file_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, said: str
) -> None:
    path = tmp_path / "run" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    os.utime(path, (1, 1))
    status, _, error = called(capsys, "import", str(tmp_path / "run"))
    assert status == 2
    assert said in " ".join(error.split())
    assert "Traceback" not in error


def test_import_says_how_to_look_at_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines(tmp_path / "rollouts" / "1.jsonl", verl_rows(1))
    status, said, _ = called(capsys, "import", str(tmp_path / "rollouts"))
    assert status == 0
    assert said.startswith("1 update in ")
    assert "rlplay replay" in said


async def test_the_screen_shows_a_run_of_which_only_texts_are_known(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        lines(tmp_path / "rollouts" / f"{step}.jsonl", verl_rows(step))
    copy = Copy(tmp_path / "rollouts")
    app = RlplayApp(ReplaySource(copy.path))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: app.play.session.shown is not None)
        for _ in range(len(LENSES) + 1):
            await pressed(pilot, "c", "right")
            text = "\n".join("".join(s.text for s in strip) for strip in lines_of(app))
            assert "shown after" not in text
            assert "shown once" not in text
            assert "appear after" not in text
            assert "algorithm not on record" in text
            assert "GRPO" not in text
        app.tuning.open()
        await until(pilot, lambda: app.tuning.knobs is not None and app.tuning.knobs.is_mounted)
        listed = app.tuning.knobs.query_one(KnobList)
        assert [option.id for option in listed.options if option.id] == ["algorithm"], "no setting is on record"
        await home(pilot)
        for key in ("down", "x", "p", "p", "p", "z", "n", "h", "g", "i", "k", "y", "d", "m", "o"):
            await pressed(pilot, key)
            await home(pilot)
        assert app.play.session.failed is None
