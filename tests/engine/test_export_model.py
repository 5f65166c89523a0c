"""The trained policy leaves rlplay as a folder that transformers loads and that says what the policy said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlplay.engine.driver import Driver
from rlplay.engine.export_model import export_model
from rlplay.engine.world_policy import register
from rlplay.export.atomic_output import ExportError
from rlplay.paths import POCKET_PATH
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.runfile import RunWriter
from tests.cli.command_line import called
from tests.recorded import synthetic_run, synthetic_started
from tests.worlds.value_run import SMALL as WORLD
from tests.worlds.value_run import Run

Start = Callable[..., tuple[Driver, Any]]


def finish(driver: Driver, updates: int) -> Any:
    """Train, close, and give the policy as it is then."""
    driver.advance("update", updates, lambda: False)
    driver.close()
    return driver._state.lm.policy


@torch.no_grad()
def assert_the_same(folder: Path, policy: Any, before: Any = None, prompt: str = "What is 2 + 2?") -> None:
    """The loaded model gives the log-probabilities and the greedy text of `policy`, and not those of `before`."""
    loaded, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    messages = [{"role": "user", "content": prompt}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    expected = policy(input_ids=ids).logits.log_softmax(-1)
    torch.testing.assert_close(loaded(input_ids=ids).logits.log_softmax(-1), expected, rtol=0, atol=0)
    if before is not None:
        assert not torch.allclose(before(input_ids=ids).logits.log_softmax(-1), expected, atol=1e-3)
    greedy = [model.generate(ids, do_sample=False, max_new_tokens=12)[0].tolist() for model in (loaded, policy)]
    assert greedy[0] == greedy[1]
    assert loaded.generation_config.eos_token_id == policy.generation_config.eos_token_id


def test_a_micro_model_comes_back_as_it_was_trained(start: Start, micro_model: Path, tmp_path: Path) -> None:
    driver, _ = start(learning_rate=1e-2)
    driver.advance("update", 1, lambda: False)
    first = {name: parameter.detach().clone() for name, parameter in driver._state.lm.policy.named_parameters()}
    policy = finish(driver, 2)
    assert export_model(tmp_path / "run.rlplay", tmp_path / "newest") == 3
    assert_the_same(tmp_path / "newest", policy, AutoModelForCausalLM.from_pretrained(micro_model))
    assert export_model(tmp_path / "run.rlplay", tmp_path / "first", update=1) == 1
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "first")
    assert all(torch.equal(parameter, first[name]) for name, parameter in loaded.named_parameters())


@pytest.mark.parametrize("architecture", ["gpt2", "qwen2"])
def test_other_architectures_with_tied_weights_too(start: Start, architecture: str, tmp_path: Path) -> None:
    driver, _ = start(architecture=architecture)
    policy = finish(driver, 1)
    export_model(tmp_path / "run.rlplay", tmp_path / "out")
    assert_the_same(tmp_path / "out", policy)


def test_the_bundled_model_comes_back_and_plays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"num_prompts": 2, "num_generations": 4, "max_completion_length": 12, "learning_rate": 1e-3}
    scenario = Scenario(name="sums", title="Sums", question="", task="arithmetic", settings=settings, eval_every=0)
    run = tmp_path / "run.rlplay"
    driver = Driver(Job(scenario, str(run), device="cpu", threads=1), lambda record: None)
    driver.load(lambda what, fraction: None)
    policy = finish(driver, 1)
    status, out, _ = called(capsys, "export", str(run), "--format", "model", "--out", str(tmp_path / "out"))
    assert (status, out) == (0, f"wrote {tmp_path / 'out'}, the policy after update 1\n")
    assert_the_same(tmp_path / "out", policy, AutoModelForCausalLM.from_pretrained(POCKET_PATH))
    template = AutoTokenizer.from_pretrained(tmp_path / "out").chat_template
    assert template == AutoTokenizer.from_pretrained(POCKET_PATH).chat_template


@pytest.mark.parametrize("algorithm", ["q-learning", "reinforce"])
def test_a_table_of_a_world_comes_back(tmp_path: Path, algorithm: str) -> None:
    """Of action values, the distribution is the ε-greedy one that makes the moves."""
    settings = {"algorithm": algorithm} | ({} if algorithm == "q-learning" else {"exploration_rate": 0.1})
    run = Run(tmp_path, WORLD, settings=settings).go(3)
    policy = finish(run.driver, 1)
    export_model(tmp_path / "w.rlplay", tmp_path / "out")
    register()
    assert policy.head.weight.abs().sum() > 0, "something was learned"
    assert_the_same(tmp_path / "out", policy, prompt="a1")
    row = AutoModelForCausalLM.from_pretrained(tmp_path / "out")(torch.tensor([[5]])).logits.softmax(-1)[0, 0, :4]
    if algorithm == "q-learning":
        assert float(row.min()) == pytest.approx(0.3 / 4, rel=1e-5)


def test_without_a_snapshot_an_export_is_refused_in_one_line(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run.rlplay", updates=2)
    with pytest.raises(ExportError, match=r"run\.rlplay keeps no snapshot, so no trained weights; play"):
        export_model(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_update_without_a_snapshot_is_refused_with_those_that_have_one(start: Start, tmp_path: Path) -> None:
    driver, _ = start()
    finish(driver, 2)
    with pytest.raises(ExportError, match="keeps no snapshot of update 7; it keeps those of 1, 2"):
        export_model(tmp_path / "run.rlplay", tmp_path / "out", update=7)


def test_a_run_of_another_trainer_has_no_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "foreign.rlplay"
    RunWriter.create(run, synthetic_started(source="TRL 1.16.0 GRPOTrainer")).close()
    status, _, err = called(capsys, "export", str(run), "--format", "model", "--out", str(tmp_path / "out"))
    assert status == 2
    assert "records a run of TRL 1.16.0 GRPOTrainer, not its weights; use the model that it saved" in err
    assert err.count("\n") == 1


def test_a_model_that_is_not_the_runs_is_refused(start: Start, micro_models: Any, tmp_path: Path) -> None:
    driver, _ = start()
    finish(driver, 1)
    with pytest.MonkeyPatch.context() as patch:
        other = AutoModelForCausalLM.from_pretrained(micro_models("gpt2"))
        patch.setattr("rlplay.engine.export_model.load_pretrained", lambda name, progress, weights: (other, None))
        with pytest.raises(ValueError, match="belongs to another model; restore the one the run began with"):
            export_model(tmp_path / "run.rlplay", tmp_path / "out")
    assert not (tmp_path / "out").exists()
