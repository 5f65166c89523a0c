"""A run of TRL goes on in rlplay where a checkpoint was: same weights, same moments, same next step."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

import torch

from rlplay.cli.rebuilding import rebuilt_run
from rlplay.engine.driver import Driver
from rlplay.engine.from_checkpoint import rebuild as rebuilding
from rlplay.engine.from_checkpoint.prompts import rows_of
from rlplay.foreign.copy import run_file
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.foreign.from_checkpoint.plan import plan
from rlplay.foreign.from_checkpoint.recorded_prompts import prompts_of
from rlplay.health.health_of_run import examine_run
from rlplay.paths import find_run
from rlplay.trace.runfile import RunReader
from rlplay.trace.settings_timeline import SettingsTimeline
from rlplay.trace.update import Update
from tests.cli.command_line import called
from tests.record import tiny
from tests.record.checkpointed import REWARDS, learn, learn_given, loaded, made_of, rebuilt, stored, trained
from tests.record.trainers import GIVEN, PAIRS, SINGLE

CLOSE = 1e-5
LONG = [{"prompt": "b ", "completion": "0123" * 10 + letter} for letter in "abcdefgh"]
"""Answers that are longer than what a run of rlplay samples unless it is told."""
Weights = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def grpo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("grpo"), tiny.PROMPTS)


@contextmanager
def gone_on(out: Path, step: int, home: Path, rewards: list[str] = REWARDS) -> Iterator[Driver]:
    with closing(loaded(rebuilt(out, step, home, rewards))) as driver:
        yield driver


def furthest(one: Weights, other: Weights) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def policy(driver: Any) -> Weights:
    return {name: p.detach().clone() for name, p in driver._state.lm.policy.named_parameters() if p.requires_grad}


def recorded(out: Path, update: int) -> Update:
    with closing(RunReader(run_file(out))) as reader:
        return reader.load(update)


def test_weights_moments_and_reference_are_the_trainers(grpo: Path, tmp_path: Path) -> None:
    made = rebuilt(grpo, 2, tmp_path)
    with closing(loaded(made)) as driver:
        assert driver.status().update == 2
        state = driver._state
        assert furthest(policy(driver), stored(grpo / "checkpoint-2")) == 0
        assert furthest(dict(state.lm.reference.named_parameters()), stored(grpo.parent / "model")) == 0
        saved = torch.load(grpo / "checkpoint-2" / "optimizer.pt", weights_only=True)["state"]
        found = [state.optimizer.state[p] for p in state.parameters.values() if p in state.optimizer.state]
        for key in ("exp_avg", "exp_avg_sq"):
            ours, theirs = (sorted(float(each[key].sum()) for each in all_of) for all_of in (found, saved.values()))
            assert ours == theirs
            assert len(ours) == 12
        assert {int(each["step"]) for each in found} == {2}
        assert state.learning_rate(0) == pytest.approx(0.01 * 2 / 4)
    assert "Adam's moments of 12 of 12 tensors" in made.rebuilt
    assert len(made.compared) == 4, "the policy, the reference and two rewards are as recorded"


@pytest.mark.parametrize("step", [1, 3])
def test_the_next_update_on_the_recorded_answers_gives_the_trainers_weights(
    grpo: Path, tmp_path: Path, step: int
) -> None:
    with gone_on(grpo, step, tmp_path) as driver:
        before = policy(driver)
        learn(driver._state, recorded(grpo, step + 1))
        after = policy(driver)
    trainers = stored(grpo / f"checkpoint-{step + 1}")
    assert furthest(after, trainers) < CLOSE < 1e-3 < furthest(before, trainers)


OTHERS: dict[str, dict[str, Any]] = {
    "rloo": {"kind": "RLOO"},
    "two iterations": {
        "num_iterations": 2, "steps_per_generation": 1, "save_steps": 2, "per_device_train_batch_size": 4,
    },
    "mean of answers, cosine, decay": {
        "loss_type": "grpo", "lr_scheduler_type": "cosine", "weight_decay": 0.1, "warmup_steps": 1,
    },
    "a schedule that rlplay lacks": {"lr_scheduler_type": "polynomial"},
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_so_does_one_of_other_losses_and_schedules(case: str, tmp_path: Path) -> None:
    out = trained(tmp_path, tiny.PROMPTS, **OTHERS[case])
    made = rebuilt(out, 2, tmp_path)
    assert any("schedule" in line for line in made.lacking) == (case == "a schedule that rlplay lacks")
    with closing(loaded(made)) as driver:
        update = recorded(out, driver.status().update + 1)
        learn(driver._state, update)
        assert update.finished is not None
        assert update.finished.trainer_steps is not None
        assert furthest(policy(driver), stored(out / f"checkpoint-{update.finished.trainer_steps[1]}")) < CLOSE


def test_adapters_go_on_beside_their_base(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    wanted = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    out = trained(tmp_path, tiny.PROMPTS, peft_config=wanted)
    with gone_on(out, 2, tmp_path) as driver:
        assert driver._state.lm.reference.off
        learn(driver._state, recorded(out, 3))
        after = policy(driver)
    kept = stored(out / "checkpoint-3", "adapter_model.safetensors")
    trainers = {name.replace(".weight", ".default.weight"): tensor for name, tensor in kept.items()}
    assert furthest(after, trainers) < CLOSE


@pytest.mark.parametrize(("kind", "data", "names"), [
    ("DPO", PAIRS, ["chosen", "rejected"]), ("SFT", GIVEN, ["completion"]), ("SFT", LONG, ["completion"]),
])  # fmt: skip
def test_given_answers_go_on(kind: str, data: list[dict[str, Any]], names: list[str], tmp_path: Path) -> None:
    out = trained(tmp_path, data, kind, talker=True)
    with gone_on(out, 2, tmp_path, []) as driver:
        lm, before = driver._state.lm, policy(driver)
        asked = list(prompts_of(recorded(out, 3), given=True))
        rows = rows_of(asked, lm.tokenizer, lm.end_ids, kind == "SFT").rows
        assert len(rows) == 8
        assert all(set(names) <= row.keys() for row in rows)
        learn_given(driver, rows)
        after = policy(driver)
    trainers = stored(out / "checkpoint-3")
    assert furthest(after, trainers) < CLOSE < 1e-3 < furthest(before, trainers)


def test_the_run_goes_on_and_not_before_the_checkpoint(grpo: Path, tmp_path: Path) -> None:
    with gone_on(grpo, 2, tmp_path) as driver:
        driver.advance("update", 2, lambda: False)
        driver.rewind(2)
        assert furthest(policy(driver), stored(grpo / "checkpoint-2")) == 0
        driver.advance("update", 1, lambda: False)
        with pytest.raises(ValueError, match="no weights of update 1: another trainer made the first 2 updates"):
            driver.rewind(1)
        assert driver.status().update == 3
    run, _ = examine_run(tmp_path / "again-2.rlplay")
    assert run is not None
    assert (run.last, run.made_before) == (3, 2)


def _copied(out: Path, to: Path) -> Path:
    shutil.copytree(out / "checkpoint-2", to)
    return to


def test_an_optimizer_that_would_run_code_is_left_closed(grpo: Path, tmp_path: Path) -> None:
    place, mark = _copied(grpo, tmp_path / "checkpoint-2"), tmp_path / "mark"

    class Evil:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
            return Path.touch, (mark,)

    torch.save({"param_groups": [{"lr": 0.005}], "state": Evil()}, place / "optimizer.pt", pickle_module=pickle)
    found = plan(run_file(grpo), place, REWARDS)
    made = made_of(found, tmp_path / "again.rlplay")
    assert not mark.exists()
    assert any("cannot be read as data" in line for line in made.lacking)


@pytest.mark.parametrize("name", ["surrogate", "scale_rewards", "algorithm"])
def test_code_that_a_run_file_names_does_not_run(
    name: str, grpo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run file may be a stranger's, and say that TRL made it."""
    code, mark, whole = tmp_path / "evil.py", tmp_path / "mark", RunReader.timeline
    code.write_text(f"open({str(mark)!r}, 'w')\ndef f(**_):\n    return 0\n")
    monkeypatch.setattr(
        RunReader, "timeline", lambda reader: SettingsTimeline(whole(reader).begun | {name: f"{code}:f"})
    )
    with suppress(ValueError):
        rebuilt(grpo, 2, tmp_path)
    assert not mark.exists()


def test_moments_of_other_parameters_begin_at_zero(grpo: Path, tmp_path: Path) -> None:
    place = _copied(grpo, tmp_path / "checkpoint-2")
    saved = torch.load(place / "optimizer.pt", weights_only=True)
    saved["state"][0]["exp_avg"] = torch.zeros(3, 3)
    torch.save(saved, place / "optimizer.pt")
    made = made_of(plan(run_file(grpo), place, REWARDS), tmp_path / "again.rlplay")
    assert any("of other parameters or of another optimizer" in line for line in made.lacking)


def test_another_runs_checkpoint_is_refused_and_nothing_stays(grpo: Path, tmp_path: Path) -> None:
    place = _copied(grpo, tmp_path / "checkpoint-2")
    tiny.model(tmp_path / "gone", seed=7).save_pretrained(place)
    home = rebuilding.paths.home() / "rebuilt"
    before = set(home.glob("*"))
    with pytest.raises(ValueError, match="is not the one of this run"):
        made_of(plan(run_file(grpo), place, REWARDS), tmp_path / "again.rlplay")
    assert not (tmp_path / "again.rlplay").exists()
    assert set(home.glob("*")) == before


def test_a_model_that_does_not_fit_is_refused_before_it_loads(
    grpo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = plan(run_file(grpo), grpo / "checkpoint-2", REWARDS)
    monkeypatch.setattr(rebuilding, "free_memory", lambda _device: 1000)
    monkeypatch.setattr(rebuilding, "prepare", None)
    with pytest.raises(ValueError, match="GiB of memory"):
        made_of(found, tmp_path / "again.rlplay")


def tried(capsys: pytest.CaptureFixture[str], out: Path, *words: str) -> tuple[int, str, str]:
    rewards = [word for entry in REWARDS for word in ("--reward", entry)]
    return called(capsys, "try", str(out), "--checkpoint", str(out / "checkpoint-2"), *rewards, *words)


def test_a_repair_is_tried_on_the_trainers_own_model(grpo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = tried(capsys, grpo, "--updates", "1", "--json")
    assert status in (0, 1), err
    found = json.loads(out)
    assert found["since"] == 2
    assert found["changes"][0]["verdict"] == "unchanged"
    assert "compared: log-probabilities of 8 recorded answers of update 3 within" in err
    (kept,) = (line.split()[3] for line in err.splitlines() if line.startswith("kept: rlplay resume "))
    with closing(RunReader(find_run(kept))) as reader:
        assert reader.updates() == [1, 2], "what was rehearsed is not recorded"


def test_a_checkpoint_that_makes_no_run_ends_the_command(grpo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(capsys, "try", str(grpo), "--reward", REWARDS[0])[0] == 2
    assert "--checkpoint" in called(capsys, "try", str(grpo))[2]
    status, _, err = called(capsys, "try", str(grpo), "--checkpoint", str(grpo / "checkpoint-2"))
    assert status == 2
    assert "--reward FILE.py:digits --reward FILE.py:length" in err


def test_the_command_says_first_what_it_has_and_what_not(
    grpo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(rebuilding, "rebuild", lambda *_: said.append(capsys.readouterr().out))
    with pytest.raises(AttributeError):
        rebuilt_run(run_file(grpo), grpo / "checkpoint-2", tuple(REWARDS), None, "cpu", quiet=False)
    assert "rebuilt: learning rate 0.005, linear with 2 steps" in said[0]
    assert "not rebuilt: TRL's random numbers" in said[0]


def test_a_reference_that_was_moved_is_asked_for(grpo: Path, tmp_path: Path) -> None:
    model, moved = grpo.parent / "model", tmp_path / "moved"
    shutil.move(model, moved)
    try:
        with pytest.raises(ForeignRunError, match="--reference DIR"):
            plan(run_file(grpo), grpo / "checkpoint-2", REWARDS)
        made = rebuilt(grpo, 2, tmp_path, reference=moved)
    finally:
        shutil.move(moved, model)
    assert len(made.compared) == 4


def test_what_makes_no_run_is_refused_by_name(grpo: Path, tmp_path: Path) -> None:
    run, at = run_file(grpo), grpo / "checkpoint-2"
    for match, place, rewards in (
        ("--reward FILE.py:length", at, REWARDS[:1]),
        ("has no reward of this name; it has digits, length", at, [*REWARDS, "os:getcwd"]),
        ("give one of checkpoint-2, checkpoint-3, checkpoint-4 in it", grpo, REWARDS),
        ("learning rate is 0 from step 4 on", grpo / "checkpoint-4", REWARDS),
    ):
        with pytest.raises(ForeignRunError, match=match):
            plan(run, place, rewards)
    with pytest.raises(ForeignRunError, match="holds no model"):
        plan(run, at, REWARDS, tmp_path)
    later = _copied(grpo, tmp_path / "later")
    state = later / "trainer_state.json"
    state.write_text(state.read_text().replace('"global_step": 2,', '"global_step": 9,'))
    with pytest.raises(ForeignRunError, match="step 9, which is not on record"):
        plan(run, later, REWARDS)


@pytest.mark.parametrize(("name", "refused"), [("temperature", True), ("weight_decay", False)])
def test_a_setting_that_is_not_on_record_is_no_default_in_silence(
    name: str, refused: bool, grpo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, whole = run_file(grpo), RunReader.timeline

    def without(reader: RunReader) -> SettingsTimeline:
        return SettingsTimeline({key: value for key, value in whole(reader).begun.items() if key != name})

    monkeypatch.setattr(RunReader, "timeline", without)
    if refused:
        with pytest.raises(ForeignRunError, match=f"{name} is not on record"):
            plan(run, grpo / "checkpoint-2", REWARDS)
    else:
        assert any(f"{name} is 0" in line for line in plan(run, grpo / "checkpoint-2", REWARDS).lacking)


def test_a_loss_on_single_answers_is_refused_by_name(tmp_path: Path) -> None:
    out = trained(tmp_path, SINGLE, "KTO", talker=True, max_steps=2)
    with pytest.raises(ForeignRunError, match="KTOTrainer trains single answers"):
        plan(run_file(out), out / "checkpoint-1")
