"""A run as a TRL script: what the script holds, and that it takes the same step."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tokenize
from pathlib import Path

import msgspec
import numpy as np
import pytest

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.trl_verl import EXPERIMENTAL
from rlplay.cli import main as cli
from rlplay.export.atomic_output import ExportError
from rlplay.scenario.schema import Scenario, Stage
from rlplay.trace.records import Changed, Evaluated, Sampled, Scored, Staged
from rlplay.trace.runfile import RunReader, RunWriter
from tests.cli.trl_script import TRL, Given, calls, run_of, script_of, with_trl
from tests.recorded import synthetic_started, synthetic_update


def labelled(update: int) -> tuple[Sampled, Scored]:
    """An update on four sums in which the first answer to each is better than the second; the others are left out."""
    sampled, scored, *_ = synthetic_update(update)
    assert isinstance(sampled, Sampled)
    assert isinstance(scored, Scored)
    questions = [f"What is 2+{n}?" for n in (2, 3, 4, 6)]
    roles = ["chosen", "rejected", "", ""] * 4
    return msgspec.structs.replace(sampled, prompts=questions), msgspec.structs.replace(scored, roles=roles)


@pytest.mark.parametrize(("algorithm", "trainer"), [("gmpo", "GMPOTrainer"), ("simpo", "CPOTrainer")])
def test_trainers_that_trl_does_not_export_come_from_their_modules(
    tmp_path: Path, algorithm: str, trainer: str
) -> None:
    writer = run_of(tmp_path, {"algorithm": algorithm, "num_prompts": 4})
    for record in labelled(1) if algorithm == "simpo" else ():
        writer.append(record)
    script = script_of(writer)
    assert f"from {EXPERIMENTAL[trainer]} import {trainer.replace('Trainer', 'Config')}, {trainer}\n" in script
    assert f"trainer = {trainer}(" in script
    assert "from trl import" not in script
    if TRL is not None:
        folder = Path(str(TRL.origin)).parent / EXPERIMENTAL[trainer].removeprefix("trl.").replace(".", "/")
        assert (folder / f"{folder.name}_trainer.py").is_file()


HOSTILE = "x\nimport os; os.system('touch PWNED')\r#\u2028\x0c\x85\\\"\"\"'''"


def test_foreign_text_in_a_script_is_a_literal_or_a_comment(tmp_path: Path) -> None:
    started = {"title": HOSTILE, "model": HOSTILE, "run_id": HOSTILE}
    fields = {"title": HOSTILE, "question": HOSTILE, "system_prompt": HOSTILE, "prompts": [HOSTILE], "model": HOSTILE,
              "chat_template_kwargs": {HOSTILE: HOSTILE}, "lora_target_modules": [HOSTILE], "use_peft": True,
              "reward": [f"{HOSTILE}.py:f"]}  # fmt: skip
    text = msgspec.yaml.encode(Scenario(name="sums", task="arithmetic", **fields)).decode()
    for algorithm in (f"{HOSTILE}.yaml", str(tmp_path / "own.yaml")):
        settings = msgspec.to_builtins(resolve({})) | {"algorithm": algorithm}
        (tmp_path / "own.yaml").write_bytes(msgspec.yaml.encode({"title": HOSTILE, "settings": {}}))
        begun = synthetic_started(scenario_text=text, settings=settings, **started)
        writer = RunWriter.create(tmp_path / f"{len(algorithm)}.rlplay", begun)
        writer.append(synthetic_update(1)[-1])
        script = script_of(writer)
        imported = {n.names[0].name for n in ast.walk(ast.parse(script)) if isinstance(n, ast.Import)}
        assert imported == set()
        assert "os.system" not in {ast.unparse(n.func) for n in ast.walk(ast.parse(script)) if isinstance(n, ast.Call)}
        constants = [n.value for n in ast.walk(ast.parse(script)) if isinstance(n, ast.Constant)]
        assert HOSTILE in constants


@pytest.mark.parametrize("codec", ["unicode_escape", "raw_unicode_escape", "utf_7"])
def test_foreign_text_does_not_choose_how_python_reads_the_script(codec: str, tmp_path: Path) -> None:
    """In the first two lines of a file `coding: …` names its encoding, in which an escape may be a line break."""
    settings = msgspec.to_builtins(resolve({})) | {"algorithm": r"x\nimport os\u000aimport os+AAo-import os#.yaml"}
    begun = synthetic_started(title=f"coding:{codec} x", settings=settings, run_id=f"coding:{codec}")
    writer = RunWriter.create(tmp_path / "a.rlplay", begun)
    writer.append(synthetic_update(1)[-1])
    script = script_of(writer).encode()
    assert tokenize.detect_encoding(io.BytesIO(script).readline)[0] == "utf-8"
    assert {n.names[0].name for n in ast.walk(ast.parse(script)) if isinstance(n, ast.Import)} == set()
    assert codec in script.decode()


def test_a_setting_that_this_version_does_not_know_is_refused(tmp_path: Path) -> None:
    for name, value in (("loss_type", "theirs"), ("aggregation", "theirs"), ("epsilon", "x")):
        settings = msgspec.to_builtins(resolve({})) | {name: value}
        writer = RunWriter.create(tmp_path / f"{name}.rlplay", synthetic_started(settings=settings))
        writer.append(synthetic_update(1)[-1])
        with pytest.raises(ValueError, match=rf"{name} .*'?{value}"):
            script_of(writer)


def test_minibatches_and_passes_are_optimizer_steps_of_as_many_completions(tmp_path: Path) -> None:
    settings = {
        "num_prompts": 6,
        "num_generations": 4,
        "num_minibatches": 3,
        "num_iterations": 2,
        "learning_rate": 1e-5,
    }
    (config,) = calls(script_of(run_of(tmp_path, settings, updates=2)), "GRPOConfig")
    arguments = {name: ast.unparse(value) for name, value in config.items()}
    assert arguments["max_steps"] == "updates * 6"
    assert arguments["per_device_train_batch_size"] == "8"
    assert arguments["steps_per_generation"] == "3"
    assert arguments["num_iterations"] == "2"
    assert arguments["gradient_accumulation_steps"] == "1"
    assert arguments["learning_rate"] == "1e-05"
    assert arguments["lr_scheduler_type"] == "'constant'"
    assert arguments["use_cpu"] == "True"
    assert arguments["seed"] == "SEED"


def test_refusals_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(tmp_path, {}, task="guess").path
    (tmp_path / "there.py").write_text("mine")
    for more, words in (
        (["--out", str(tmp_path / "out.py")], "environment"),
        (["--out", str(tmp_path / "out.py"), "--update", "1"], "--update"),
        (["--out", str(tmp_path / "there.py")], "environment"),
    ):
        with pytest.raises(SystemExit) as left:
            cli.main(["export", str(run), "--format", "trl", *more])
        text = capsys.readouterr().err
        assert left.value.code == 2
        assert words in text
        assert text.count("\n") == 1
    assert (tmp_path / "there.py").read_text() == "mine"


def test_a_later_change_of_a_setting_is_a_comment_and_an_initial_one_is_exported(tmp_path: Path) -> None:
    writer = run_of(tmp_path, {}, updates=3)
    writer.append(Changed(update=1, phase="sample", name="epsilon", value=0.3, previous=0.2))
    writer.append(Changed(update=3, phase="credit", name="beta", value=0.1, previous=0.0))
    script = script_of(writer)
    assert "# rlplay: beta went from 0 to 0.1 in update 3" in script
    (config,) = calls(script, "GRPOConfig")
    assert ast.literal_eval(config["epsilon"]) == 0.3
    assert ast.literal_eval(config["beta"]) == 0
    assert "updates = 3  # as many as in the run; its scenario plans 5" in script


@pytest.mark.parametrize("algorithm", ["grpo", "sft"])
def test_held_out_prompts_are_answered_where_the_trainer_samples(tmp_path: Path, algorithm: str) -> None:
    settings = {"algorithm": algorithm, "num_minibatches": 2}
    writer = run_of(tmp_path, settings, task="questions", eval_every=3, eval_prompts=7, eval_generations=2)
    nothing: Given = {"prompts": [], "completions": [], "rewards": np.zeros(0, dtype=np.float32), "seconds": 0.0}
    writer.append(Evaluated(update=0, metrics={"eval_reward": 0.5}, **nothing))
    script = script_of(writer)
    (config,) = calls(script, "Config")
    if algorithm == "sft":
        assert "eval_steps" not in config
        assert "# rlplay: held-out answers every 3 updates are left out" in script
        return
    assert ast.literal_eval(config["eval_steps"]) == 6
    assert ast.literal_eval(config["num_generations_eval"]) == 2
    assert ast.literal_eval(config["eval_on_start"]) is True
    assert ast.unparse(config["per_device_eval_batch_size"]) == "len(held_out) * 2"
    assert "held_out = for_trl.held_out(task, most=7)" in script


def test_rewards_and_weights_are_those_of_the_run(tmp_path: Path) -> None:
    weights = {"correct": 1, "mentioned": 0, "steps": 0.5}
    settings = {"reward_weights": weights, "overlong_buffer": 4, "max_completion_length": 16}
    script = script_of(run_of(tmp_path, settings, task="word_problems"))
    (trainer,), (config,) = calls(script, "GRPOTrainer"), calls(script, "GRPOConfig")
    assert ast.unparse(trainer["reward_funcs"]) == (
        "[for_trl.summed(rewards['correct']), for_trl.summed(rewards['steps']), get_soft_overlong_punishment(16, 4)]"
    )
    assert ast.literal_eval(config["reward_weights"]) == [1.0, 0.5, 1.0]


def test_files_of_ones_own_are_named_by_their_paths_and_no_text_leaves_its_place(tmp_path: Path) -> None:
    (tmp_path / 'a "b".jsonl').write_text('{"prompt": "1+1="}\n')
    (tmp_path / "score.py").write_text("raise SystemExit('not at export')\ndef short(**_): return []\n")
    own = {"dataset": str(tmp_path / 'a "b".jsonl'), "reward": [f"{tmp_path / 'score.py'}:short"]}
    script = script_of(run_of(tmp_path, {}, title='x"""\nimport evil\r', model="org/model", **own))
    assert "import evil" not in [line.strip() for line in script.splitlines()]
    constants = [node.value for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Constant)]
    assert {own["dataset"], own["reward"][0], "org/model"} <= set(constants)
    assert "load_task" not in script


def test_stages_hand_the_model_on_and_the_script_ends_where_the_run_did(tmp_path: Path) -> None:
    stages = [
        Stage("imitate", 1, {"algorithm": "sft", "num_prompts": 4}),
        Stage("compare", 2, {"algorithm": "dpo", "num_prompts": 4}),
        Stage("never", 2, {"algorithm": "ppo"}),
    ]
    writer = run_of(tmp_path, {}, updates=2, stages=stages)
    second = msgspec.to_builtins(resolve(stages[1].settings))
    writer.append(Staged(update=2, index=1, stages=3, name="compare", settings=second))
    for number in (1, 2):
        for record in (*labelled(number), synthetic_update(number)[-1]):
            writer.append(record)
    script = script_of(writer)
    (sft,), (dpo,) = calls(script, "SFTTrainer"), calls(script, "DPOTrainer")
    assert ast.unparse(sft["model"]) == "MODEL"
    assert ast.unparse(dpo["model"]) == "str(OUT / 'stage-1')"
    assert "these 4 are from the run" in script
    assert "PPO" not in script
    assert "stage never" in script


def test_an_update_without_pairs_has_nothing_to_learn_from(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no pairs"):
        script_of(run_of(tmp_path, {"algorithm": "dpo"}))


@with_trl
def test_the_script_of_a_real_run_takes_the_same_step(tmp_path: Path) -> None:
    """DPO on the run's pairs: loss, gradient and log-probabilities of TRL's first step are those recorded."""
    scenario = tmp_path / "sums.yaml"
    sizes = "{algorithm: dpo, num_prompts: 6, max_completion_length: 12}"
    scenario.write_text(f"title: Sums\nquestion: '?'\ntask: arithmetic\neval_every: 0\nsettings: {sizes}\n")
    run, script = tmp_path / "run.rlplay", tmp_path / "train.py"
    for command in (
        ["run", str(scenario), "--updates", "1", "--device", "cpu", "--out", str(run)],
        ["export", str(run), "--format", "trl", "--out", str(script)],
    ):
        with pytest.raises(SystemExit) as left:
            cli.main(command)
        assert left.value.code == 0
    code = f"import json, runpy; print(json.dumps(runpy.run_path({str(script)!r})['trainer'].state.log_history[0]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    with RunReader(run) as reader:
        (ours,) = (metrics for number, metrics in reader.metrics() if number == 1)
    for name in ("loss", "grad_norm", "logps/chosen", "logps/rejected", "learning_rate", "rewards/margins"):
        assert theirs[name] == pytest.approx(ours[name], abs=1e-4), name
    assert np.isfinite(ours["grad_norm"])
    assert (tmp_path / "train.trained" / "model.safetensors").is_file()


def test_tools_and_environments_go_along(tmp_path: Path) -> None:
    given = {"tools": ["game.py:add", "my.tools:look"], "environment_factory": "game.py:Game"}
    script = script_of(run_of(tmp_path, {"algorithm": "grpo"}, **given))
    (trainer,) = calls(script, "GRPOTrainer")
    assert ast.unparse(trainer["tools"]) == "[load_function('game.py:add'), load_function('my.tools:look')]"
    assert ast.unparse(trainer["environment_factory"]) == "load_function('game.py:Game')"
    assert "from rlplay.tasks.own_rewards import load_function\n" in script
    weights = {"correct": 1, "Game": 2}
    (tmp_path / "b").mkdir()
    weighted = script_of(run_of(tmp_path / "b", {"algorithm": "grpo", "reward_weights": weights}, **given))
    assert "# rlplay: the environment's own reward has weight 2 in the run, and 1 in TRL\n" in weighted
    (tmp_path / "c").mkdir()
    with pytest.raises(ExportError, match="tools: TRL's RLOOTrainer has none"):
        script_of(run_of(tmp_path / "c", {"algorithm": "rloo"}, **given))


def test_a_stage_with_its_own_data_has_its_own_lines(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"prompt": "1", "completion": "2"}\n')
    own = {"dataset": str(tmp_path / "mine.jsonl"), "reward": ["mine.py:longest"]}
    stages = [Stage("first", 1, {"algorithm": "grpo"}), Stage("mine", 1, {"algorithm": "grpo"}, **own)]
    script = script_of(run_of(tmp_path, {"algorithm": "grpo"}, updates=2, stages=stages))
    first, second = script.split("# Stage mine")
    assert 'task = load_task("arithmetic")\nrewards = task.rewards\n' in first
    loaded = f'load_own("{tmp_path / "mine.jsonl"}", {{}})'
    assert f'task = {loaded}\nrewards = {{\n    "longest": load_reward("mine.py:longest"),\n}}\n' in first
    assert 'reward_funcs=[for_trl.summed(rewards["correct"]), for_trl.summed(rewards["mentioned"])]' in first
    assert 'reward_funcs=[for_trl.summed(rewards["longest"])]' in second


def test_memory_settings_go_along(tmp_path: Path) -> None:
    given = {"dtype": "bfloat16", "use_peft": True, "lora_r": 4, "lora_alpha": 8, "lora_target_modules": ["q_proj"]}
    settings = {"algorithm": "dr-grpo", "num_prompts": 6, "num_generations": 4, "num_minibatches": 2}
    own = {"per_device_train_batch_size": 5, "gradient_checkpointing": True}
    script = script_of(run_of(tmp_path, settings | own, **given))
    (config,) = calls(script, "GRPOConfig")
    arguments = {name: ast.unparse(value) for name, value in config.items()}
    assert arguments["per_device_train_batch_size"] == "4"
    assert arguments["gradient_accumulation_steps"] == "3"
    assert arguments["steps_per_generation"] == "6"
    assert arguments["model_init_kwargs"] == "{'dtype': 'bfloat16'}"
    assert arguments["gradient_checkpointing"] == "True"
    assert "# rlplay: per_device_train_batch_size 5 is 4 here" in script
    (trainer,) = calls(script, "GRPOTrainer")
    expected = "LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, task_type='CAUSAL_LM', target_modules=['q_proj'])"
    assert ast.unparse(trainer["peft_config"]) == expected
    assert "from peft import LoraConfig\n" in script
    assert not config.keys() & {"tf32", "full_determinism"}
    (tmp_path / "b").mkdir()
    stages = [Stage("a", 1, {"algorithm": "grpo"}), Stage("b", 1, {"algorithm": "grpo"})]
    with pytest.raises(ExportError, match="use_peft in a run with stages"):
        script_of(run_of(tmp_path / "b", settings, updates=2, stages=stages, **given))


@with_trl
@pytest.mark.parametrize("algorithm", ["grpo", "dpo", "sft"])
def test_trl_takes_the_memory_settings(tmp_path: Path, algorithm: str) -> None:
    import trl

    settings = {"algorithm": algorithm, "num_prompts": 4, "per_device_train_batch_size": 2}
    writer = run_of(tmp_path, settings, dtype="bfloat16")
    for record in labelled(1) if algorithm != "grpo" else ():
        writer.append(record)
    script = script_of(writer)
    name = f"{algorithm.upper()}Config"
    (config,) = calls(script, name)
    fields = {key: ast.unparse(value) for key, value in config.items()}
    names = {"OUT": str(tmp_path), "SEED": 0, "updates": 1, "str": str, "len": len, "held_out": [0]}
    made = getattr(trl, name)(**{key: eval(value, dict(names)) for key, value in fields.items()})
    step = made.per_device_train_batch_size * made.gradient_accumulation_steps
    assert step == (32 if algorithm == "grpo" else 4)
    assert made.per_device_train_batch_size == (1 if algorithm == "dpo" else 2)
    assert made.model_init_kwargs == {"dtype": "bfloat16"}
