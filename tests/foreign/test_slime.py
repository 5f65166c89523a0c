"""The dumps of slime and miles, as runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.foreign.copy import Copy
from rlplay.health.digest import digest
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update
from tests.cli.command_line import called
from tests.foreign.grown import aged
from tests.foreign.slime_files import BEGIN, LENGTHS, samples, save, trained, write_ranks, write_rollout, write_rows
from tests.foreign.test_files import updates_of


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def flat(values: Any) -> np.ndarray:
    return np.concatenate([np.asarray(each, dtype=np.float32) for each in values])


OWN = flat([[1, 1, 1, 1], [1, 1], [1, 1, 0, 0, 1], [1, 1, 1]]) == 1


def masked(values: Any) -> np.ndarray:
    return np.where(OWN, flat(values), np.nan).astype(np.float32)


def agrees(update: Update, rollout: int) -> None:
    """Whether every number of the update is that of the files."""
    rows, columns, sampled = samples(rollout), trained(rollout), update.sampled
    assert sampled.group.tolist() == [0, 0, 1, 1]
    assert sampled.prompts == ["What is 0?", "What is 1?"]
    assert sampled.prompt_ids.tolist() == [11, 12, 13, 11, 12, 14]
    assert sampled.token_ids.tolist() == [i for row in rows for i in row["tokens"][BEGIN:]]
    assert np.diff(sampled.offsets).tolist() == list(LENGTHS)
    assert sampled.mask.tolist() == OWN.astype(int).tolist()
    assert sampled.truncated.tolist() == [0, 1, 0, 0]
    assert sampled.columns == [{"label": "l0"}, {"label": "l1"}]
    np.testing.assert_array_equal(sampled.old_logprobs, masked(columns["log_probs"]))
    np.testing.assert_array_equal(sampled.sampling_logprobs, masked([row["rollout_log_probs"] for row in rows]))
    np.testing.assert_array_equal(update.credited.ref_logprobs, masked(columns["ref_log_probs"]))
    counts = np.repeat([1, 1, 1, 0], LENGTHS)
    np.testing.assert_array_equal(update.credited.advantages, np.where(OWN, flat(columns["advantages"]) * counts, 0))
    assert update.scored.rewards.tolist() == [0, 0.25, 0.5, 0.75]
    assert digest(update).apart
    assert digest(update).mismatch is not None


def test_slime(tmp_path: Path) -> None:
    for rollout in (0, 1):
        write_rollout(tmp_path / "dump", rollout, samples(rollout))
        write_rows(tmp_path / "dump", rollout, trained(rollout))
    save(tmp_path / "dump" / "rollout_data" / "eval_1.pt", {"rollout_id": 1, "samples": samples(7)}, 60)
    found = updates_of(tmp_path / "dump")
    assert sorted(found) == [1, 2]
    for rollout in (0, 1):
        agrees(found[rollout + 1], rollout)
    with RunReader(Copy(tmp_path / "dump").path) as run:
        assert (run.started.source, run.started.settings) == ("slime", {"algorithm": ""})


@pytest.mark.parametrize("shares", [[[0, 1, 2, 3]], [[3, 0], [1, 2]], [[0, 1, 2, 3], [0, 1, 2, 3]]])
def test_miles_has_a_file_for_each_rank(shares: list[list[int]], tmp_path: Path) -> None:
    (tmp_path / "dump" / "dashboard_columns").mkdir(parents=True)
    write_rollout(tmp_path / "dump", 0, samples(0))
    write_ranks(tmp_path / "dump", 0, trained(0), shares)
    agrees(updates_of(tmp_path / "dump")[1], 0)
    with RunReader(Copy(tmp_path / "dump").path) as run:
        assert run.started.source == "miles"


def test_what_a_rank_holds_a_share_of_is_left_out(tmp_path: Path) -> None:
    columns = trained(0)
    columns["log_probs"] = [each[::2] for each in columns["log_probs"]]  # as context parallelism leaves them
    write_rollout(tmp_path / "dump", 0, samples(0))
    write_ranks(tmp_path / "dump", 0, columns, [[0, 1, 2, 3]])
    sampled = updates_of(tmp_path / "dump")[1].sampled
    assert sampled.sampling_logprobs is None
    np.testing.assert_array_equal(sampled.old_logprobs, masked([row["rollout_log_probs"] for row in samples(0)]))


def test_a_sample_that_was_not_trained_has_no_numbers_of_the_training_pass(tmp_path: Path) -> None:
    write_rollout(tmp_path / "dump", 0, samples(0))
    write_ranks(tmp_path / "dump", 0, trained(0), [[0, 2]])
    update = updates_of(tmp_path / "dump")[1]
    known = [bool(np.isfinite(each).any()) for each in np.split(update.sampled.old_logprobs, np.cumsum(LENGTHS)[:-1])]
    assert known == [True, False, True, False]


def test_rollouts_alone_have_nothing_to_hold_the_sampler_against(tmp_path: Path) -> None:
    write_rollout(tmp_path / "dump", 0, samples(0), age=10_000)
    update = updates_of(tmp_path / "dump")[1]
    assert update.sampled.sampling_logprobs is None
    assert np.isfinite(update.sampled.old_logprobs[OWN]).all()
    assert digest(update).mismatch is None


def test_of_several_rewards_the_training_pass_says_which_counted(tmp_path: Path) -> None:
    rows = [row | {"reward": {"acc": row["reward"], "format": 1.0, "said": "yes"}} for row in samples(0)]
    for name in ("both", "rollouts"):
        write_rollout(tmp_path / name, 0, rows, age=10_000)
    write_rows(tmp_path / "both", 0, trained(0))
    scored = updates_of(tmp_path / "both")[1].scored
    assert scored.rewards.tolist() == [0, 0.25, 0.5, 0.75]
    assert sorted(scored.gold) == ["acc", "format"]
    scored = updates_of(tmp_path / "rollouts")[1].scored
    assert sorted(scored.gold) == ["acc", "format"]
    assert not scored.parts


def test_an_update_waits_for_its_training_pass(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    write_rollout(dump, 0, samples(0), age=100)
    copy = Copy(dump)
    with RunReader(copy.path) as run:
        assert run.updates() == [], "its training may still be under way"
        write_rows(dump, 0, trained(0), age=0)
        write_rollout(dump, 1, samples(1), age=0)
        copy.pull()
        assert run.updates() == [], "the file may still grow"
        aged(dump / "train_data" / "0_0.pt", 10)
        copy.pull()
        assert run.updates() == [1]
        agrees(run.load(1), 0)
        write_rollout(dump, 2, samples(2), age=100)
        aged(dump / "rollout_data" / "1.pt", 100)
        copy.pull()
        assert run.updates() == [1], "rollouts run ahead of the training"
        for rollout in (1, 2):
            write_rows(dump, rollout, trained(rollout))
        copy.pull()
        assert run.updates() == [1, 2, 3]


def test_a_file_that_is_half_written_waits(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    write_rollout(dump, 0, samples(0))
    write_rows(dump, 0, trained(0))
    whole = (dump / "train_data" / "0_0.pt").read_bytes()
    (dump / "train_data" / "0_0.pt").write_bytes(whole[:500])
    aged(dump / "train_data" / "0_0.pt", 5)
    copy = Copy(dump)
    with RunReader(copy.path) as run:
        assert run.updates() == []
        (dump / "train_data" / "0_0.pt").write_bytes(whole)
        aged(dump / "train_data" / "0_0.pt", 5)
        copy.pull()
        assert run.updates() == [1]


class Code:
    def __reduce__(self) -> Any:
        return print, ("loud",)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"samples": [Code()]}, "it names '__builtin__.print', which is no data, so nothing of it was read"),
        ({"samples": [{"tokens": [1]}]}, "it has no 'response_length'"),
        ({"samples": [{"tokens": ["a"], "response_length": 1}]}, "is not a file of slime"),
        ({"samples": [{"tokens": [[1], [2]], "response_length": 1}]}, "is not a file of slime"),
        ({"other": 1}, "0.pt cannot be read as a file of slime"),
        ([1], "0.pt cannot be read as a file of slime"),
        ({"samples": 3}, "0.pt cannot be read as a file of slime"),
        (torch.zeros(3), "0.pt cannot be read as a file of slime"),
    ],
)
def test_what_is_no_dump_is_one_line(held: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "dump" / "rollout_data" / "0.pt", held, 10_000)
    status, out, error = called(capsys, "import", str(tmp_path / "dump"))
    assert status == 2
    assert said in " ".join(error.split())
    assert "Traceback" not in error
    assert "loud" not in out


def test_a_dump_is_looked_at_without_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rollout(tmp_path / "dump", 0, samples(0))
    write_rows(tmp_path / "dump", 0, trained(0))
    status, said, _ = called(capsys, "health", str(tmp_path / "dump"), "--json")
    assert status in (0, 1)
    assert json.loads(said)
