"""The files that NeMo-RL writes by itself, as runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlplay.foreign.copy import Copy
from rlplay.health.digest import digest
from rlplay.trace.runfile import RunReader
from tests.cli.command_line import called
from tests.foreign.nemo_files import LENGTHS, batch, write
from tests.foreign.test_files import updates_of


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def own(columns: dict[str, Any], name: str) -> np.ndarray:
    """A column over the answers' tokens, flat, without prompts and padding."""
    rows = zip(columns[name], LENGTHS["answer"], strict=True)
    return np.concatenate([np.array(row)[3 : 3 + length] for row, length in rows])


def test_every_number_of_the_file_comes_out_equal(tmp_path: Path) -> None:
    for step in (1, 2):
        write(tmp_path / "exp_001", step, batch(step))
    found = updates_of(tmp_path / "exp_001")
    assert sorted(found) == [1, 2]
    for step, update in found.items():
        columns, sampled = batch(step), update.sampled
        mask = own(columns, "token_loss_mask")
        assert sampled.group.tolist() == [0, 0, 1, 1]
        assert np.diff(sampled.offsets).tolist() == list(LENGTHS["answer"])
        assert sampled.prompt_ids.tolist() == [11, 12, 13, 11, 12, 14]
        assert sampled.prompts == ["What is 0?", "What is 1?"]
        assert sampled.token_ids.tolist() == own(columns, "token_ids").tolist()
        assert sampled.mask.tolist() == mask.tolist()
        assert not sampled.ends_known
        for name, theirs in (("old_logprobs", "prev_logprobs"), ("sampling_logprobs", "generation_logprobs")):
            expected = np.where(mask == 1, own(columns, theirs), np.nan).astype(np.float32)
            np.testing.assert_array_equal(getattr(sampled, name), expected)
        assert update.scored.rewards.tolist() == columns["rewards"]
        counts = np.repeat(columns["sample_loss_mask"], LENGTHS["answer"])
        np.testing.assert_array_equal(
            update.credited.advantages, (own(columns, "advantages") * mask * counts).astype(np.float32)
        )
    with RunReader(Copy(tmp_path / "exp_001").path) as run:
        assert run.started.source == "NeMo-RL"
        assert run.started.settings == {"algorithm": ""}


def test_the_sampler_is_held_against_the_policy(tmp_path: Path) -> None:
    columns = batch(1)
    write(tmp_path / "both", 1, columns)
    mask = own(columns, "token_loss_mask") == 1
    gap = own(columns, "prev_logprobs")[mask] - own(columns, "generation_logprobs")[mask]
    measured = digest(updates_of(tmp_path / "both")[1])
    assert measured.apart
    assert measured.mismatch == pytest.approx(np.mean(np.exp(gap) - gap - 1), rel=1e-3)


@pytest.mark.parametrize("prev", ["copied", "zeros", "absent"])
def test_log_probabilities_that_the_policy_did_not_compute_are_nothing_to_hold_it_against(
    prev: str, tmp_path: Path
) -> None:
    columns = batch(1)
    columns["prev_logprobs"] = (
        columns["generation_logprobs"] if prev == "copied" else np.zeros_like(columns["prev_logprobs"]).tolist()
    )
    if prev == "absent":
        del columns["prev_logprobs"]
    write(tmp_path / "run", 1, columns)
    sampled = updates_of(tmp_path / "run")[1].sampled
    known = (sampled.sampling_logprobs is not None, bool(np.isfinite(sampled.old_logprobs).any()))
    assert known == ((False, True) if prev == "copied" else (True, False))


def test_dynamic_sampling_keeps_what_was_trained(tmp_path: Path) -> None:
    columns = batch(1)
    kept = columns["rewards"]
    unfiltered = {"rewards": [0.0, 0.0, *kept], "filtered_rewards": kept}
    write(tmp_path / "run", 1, unfiltered | {name: each for name, each in columns.items() if name != "rewards"})
    assert updates_of(tmp_path / "run")[1].scored.rewards.tolist() == kept


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"content": [["a", "b"]], "input_lengths": [3]}, "holds texts and no tokens"),
        ({"responses_create_params": [{}], "full_result": [{}]}, "env.should_log_nemo_gym_responses=false"),
        (batch(1) | {"advantages": [[0.5]] * 4}, "train_data_step1.jsonl is not a file of NeMo-RL"),
        ({name: each for name, each in batch(1).items() if name != "rewards"}, "it has no 'rewards'"),
    ],
)
def test_a_file_without_what_is_needed_is_one_line(
    columns: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "run", 1, columns)
    status, _, error = called(capsys, "import", str(tmp_path / "run"))
    assert status == 2
    assert said in " ".join(error.split())
    assert "Traceback" not in error
