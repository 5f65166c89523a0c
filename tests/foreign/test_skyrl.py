"""SkyRL's training batches as runs, which its own code wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from rlplay.foreign.copy import Copy
from rlplay.foreign.skyrl import rollouts
from rlplay.health.digest import digest
from rlplay.trace.runfile import RunReader
from tests.cli.command_line import called
from tests.foreign.grown import aged
from tests.foreign.test_files import updates_of
from tests.foreign.write_skyrl import MASKS, PROMPTS, RESPONSES, WRITTEN, numbers


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("inside", ["", "dumped_data"])
def test_every_number_comes_out_equal(inside: str, tmp_path: Path) -> None:
    shutil.copytree(WRITTEN, tmp_path / "run" / inside)
    for path in (tmp_path / "run" / inside).iterdir():
        aged(path)
    found = updates_of(tmp_path / "run")
    assert sorted(found) == [1, 2]
    own = np.concatenate(MASKS) == 1
    for step, update in found.items():
        known, sampled = {name: np.concatenate(rows) for name, rows in numbers(step).items()}, update.sampled
        if step == 2:
            known["action_log_probs"] = torch.tensor(known["action_log_probs"]).to(torch.bfloat16).float().numpy()
        assert sampled.token_ids.tolist() == [i for row in RESPONSES for i in row]
        assert sampled.prompt_ids.tolist() == [*PROMPTS[0], *PROMPTS[2]]
        assert sampled.group.tolist() == [0, 0, 1, 1], "what fills the batch up is left out"
        assert sampled.mask.tolist() == own.astype(int).tolist()
        for name, theirs in (("old_logprobs", "action_log_probs"), ("sampling_logprobs", "rollout_logprobs")):
            np.testing.assert_array_equal(getattr(sampled, name), np.where(own, known[theirs], np.nan))
        np.testing.assert_array_equal(
            update.credited.ref_logprobs, np.where(own, known["base_action_log_probs"], np.nan)
        )
        np.testing.assert_array_equal(update.credited.advantages, np.where(own, known["advantages"], 0))
        np.testing.assert_array_equal(update.credited.values, np.where(own, known["values"], np.nan))
        assert np.isnan(update.scored.rewards).all(), "SkyRL takes rewards out of the batch"
        assert "reward" not in update.finished.metrics
        assert digest(update).apart
    with RunReader(Copy(tmp_path / "run").path) as run:
        assert (run.started.source, run.started.settings) == ("SkyRL", {"algorithm": ""})


@pytest.mark.parametrize("right", [False, True])
def test_answers_may_be_padded_on_either_side(right: bool) -> None:
    def padded(values: list[float]) -> np.ndarray:
        return np.array([*values, 0, 0] if right else [0, 0, *values], dtype=np.float32)

    whole = [11, 12, 21, 22, 23]
    row = {
        "sequences": padded(whole), "attention_mask": padded([1] * 5), "response_mask": padded([1] * 3),
        "loss_mask": padded([1, 0, 1]), "action_log_probs": padded([-1, -2, -3]), "advantages": padded([5, 6, 7]),
        "group": 0,
    }  # fmt: skip
    found = rollouts(1, [row])
    assert (found.prompt_ids.tolist(), found.token_ids.tolist()) == ([11, 12], [21, 22, 23])
    assert found.mask.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(found.old_logprobs, [-1, np.nan, -3])
    np.testing.assert_array_equal(found.advantages, [5, 0, 7])


def test_another_pickle_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run" / "global_step_1_training_input.pkl"
    path.parent.mkdir()
    for content, said in (
        (b"\x80\x04}.", "it holds no training batch"),
        (b"\x80\x02cos\nsystem\n.", "names 'os.system'"),
    ):
        path.write_bytes(content)
        aged(path, 100)
        status, _, error = called(capsys, "import", str(tmp_path / "run"))
        assert status == 2
        assert said in " ".join(error.split())
