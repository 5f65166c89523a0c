"""A folder without answers is refused in one line, which names what would keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import called


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("global_step_5/actor/model.pt", "external_lib=rlplay.record.verl"),
        ("exp_001/train_data_step1.jsonl", "give one of them, such as exp_001"),
        ("step_10/training_info.json", "logger.log_dir"),
        ("0.pt", "with rollout_data in it"),
        ("train_data/0_0.pt", "with rollout_data in it"),
        ("rollout_data/eval_0.pt", "with rollout_data in it"),
        ("latest_checkpointed_iteration.txt", "--dump-details FOLDER"),
        ("dumped_evals/global_step_1_evals/sums.jsonl", "trainer.dump_data_batch=true"),
        ("global_step_5/policy/model.pt", "trainer.dump_data_batch=true"),
        ("exp_filtered_rollouts_000000.jsonl", "--save_traces with --rollouts_save_path"),
        ("checkpoints/step_10/trainer/x", "[monitors.file]"),
        ("_actor/global_step10/x", "rlplay.record"),
    ],
)
def test_each_trainer_has_a_line(
    name: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    path = tmp_path / "run" / name
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    status, _, error = called(capsys, "import", str(tmp_path / "run"))
    assert (status, error.count("\n")) == (2, 1)
    assert words in error
