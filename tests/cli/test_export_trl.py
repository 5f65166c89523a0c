"""A run as a TRL script: every setting is handed over, said to be lost, or refused; the script takes the same step."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.algorithms.apply import apply_all, resolve
from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.settings import Settings, choices
from rlplay.algorithms.trl_verl import EXPERIMENTAL, trainer_of
from rlplay.cli import main as cli
from rlplay.export.atomic_output import ExportError
from rlplay.export.trl.answers import answer_fields
from rlplay.export.trl.limits import unsupported_setting
from rlplay.export.trl.policy import policy_fields
from rlplay.export.trl.script import export_trl
from rlplay.export.trl.section import RunFacts, section_lines
from rlplay.export.trl.stages import PlayedStage
from rlplay.scenario.schema import Scenario, Stage
from rlplay.trace.records import Changed, Evaluated, Sampled, Scored, Staged
from rlplay.trace.runfile import RunReader, RunWriter
from tests.parity.ours import SIZES
from tests.parity.policy_cases import ROWS as POLICY_ROWS
from tests.parity.preference_cases import ROWS as PREFERENCE_ROWS
from tests.recorded import synthetic_started, synthetic_update

TRL = importlib.util.find_spec("trl")
with_trl = pytest.mark.skipif(TRL is None, reason='TRL is not installed: pip install -e ".[parity]"')

Given = dict[str, Any]


def run_of(folder: Path, settings: Given, updates: int = 1, **fields: Any) -> RunWriter:
    """A recorded run with `updates` finished updates that have no tokens; `fields` are the scenario's."""
    place = {} if "dataset" in fields else {"task": "arithmetic"}
    given = {"title": "Sums", "question": "?", "max_updates": 5, **place, **fields}
    scenario = Scenario(name="sums", settings=settings, **given)
    text = msgspec.yaml.encode(scenario).decode()
    begun = msgspec.to_builtins(resolve(settings | (scenario.stages[0].settings if scenario.stages else {})))
    writer = RunWriter.create(folder / "run.rlplay", synthetic_started(scenario_text=text, settings=begun))
    for number in range(1, updates + 1):
        writer.append(synthetic_update(number)[-1])
    return writer


def labelled(update: int) -> tuple[Sampled, Scored]:
    """An update on four sums in which the first answer to each is better than the second; the others are left out."""
    sampled, scored, *_ = synthetic_update(update)
    assert isinstance(sampled, Sampled)
    assert isinstance(scored, Scored)
    questions = [f"What is 2+{n}?" for n in (2, 3, 4, 6)]
    roles = ["chosen", "rejected", "", ""] * 4
    return msgspec.structs.replace(sampled, prompts=questions), msgspec.structs.replace(scored, roles=roles)


def script_of(writer: RunWriter) -> str:
    writer.close()
    out = writer.path.with_suffix(".py")
    export_trl(writer.path, out)
    return out.read_text(encoding="utf-8")


def keywords(fields: Iterable[str]) -> Given:
    """What the fields of a config say, without their comments."""
    call = ast.parse("f(\n" + "\n".join(fields) + "\n)", mode="eval").body
    assert isinstance(call, ast.Call)
    return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}


def calls(script: str, end: str) -> list[dict[str, ast.expr]]:
    """The keyword arguments of each call of a name that ends so, in order."""
    found = [n for n in ast.walk(ast.parse(script)) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith(end)]
    return [{str(word.arg): word.value for word in call.keywords} for call in sorted(found, key=lambda n: n.lineno)]


@pytest.mark.parametrize(("kind", "mine", "theirs"), [row[1:] for row in POLICY_ROWS])
def test_a_policy_gradient_is_handed_over_as_it_was_verified(kind: str, mine: Given, theirs: Given) -> None:
    settings = resolve(SIZES | mine | {"num_minibatches": 1})
    assert unsupported_setting(settings) is None
    said = keywords(policy_fields(settings, [1.0]))
    verified = {name: value for name, value in theirs.items() if name != "micro_batches"}
    assert {name: said[name] for name in verified} == verified
    assert (trainer_of(settings) or [""])[0].lower() == f"{kind}trainer"
    assert said["per_device_train_batch_size"] == settings.num_prompts * settings.num_generations


@pytest.mark.parametrize(("kind", "mine", "theirs"), [row[1:] for row in PREFERENCE_ROWS if row[1] != "orpo"])
def test_a_loss_of_pairs_is_handed_over_as_it_was_verified(kind: str, mine: Given, theirs: Given) -> None:
    settings = resolve(mine)
    assert unsupported_setting(settings) is None
    said = keywords(answer_fields(settings, recorded=True))
    if kind == "dpo":
        said["loss_type"] = said["loss_type"][0]
    assert {name: said[name] for name in theirs} == theirs
    assert (trainer_of(settings) or [""])[0].lower() == f"{kind}trainer"
    assert said["per_device_train_batch_size"] == settings.num_prompts * (2 if kind == "kto" else 1)


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


def test_minibatches_and_passes_are_optimizer_steps_of_as_many_completions(tmp_path: Path) -> None:
    settings = {
        "num_prompts": 6,
        "num_generations": 4,
        "num_minibatches": 3,
        "num_iterations": 2,
        "learning_rate": 1e-5,
    }
    (config,) = calls(script_of(run_of(tmp_path, settings, updates=2)), "GRPOConfig")
    said = {name: ast.unparse(value) for name, value in config.items()}
    assert said["max_steps"] == "updates * 6"
    assert said["per_device_train_batch_size"] == "8"
    assert said["steps_per_generation"] == "3"
    assert said["num_iterations"] == "2"
    assert said["gradient_accumulation_steps"] == "1"
    assert said["learning_rate"] == "1e-05"
    assert said["lr_scheduler_type"] == "'constant'"
    assert said["use_cpu"] == "True"
    assert said["seed"] == "SEED"


@with_trl
@pytest.mark.parametrize(
    "algorithm", [name for name in PRESETS if unsupported_setting(resolve({"algorithm": name})) is None]
)
def test_every_field_is_one_of_trls(algorithm: str) -> None:
    settings = resolve({"algorithm": algorithm})
    found = trainer_of(settings)
    assert TRL is not None
    assert found is not None
    root = Path(str(TRL.origin)).parent
    name = found[0].removesuffix("Trainer")
    module = EXPERIMENTAL.get(found[0], "trl.trainer").removeprefix("trl.").replace(".", "/")
    own = [root / module / f"{name.lower()}_config.py"]
    own += [root / "trainer/grpo_config.py"] if name == "GMPO" else []  # which it extends
    base = Path(str(importlib.util.find_spec("transformers.training_args").origin))  # type: ignore[union-attr]
    known = {
        node.target.id
        for path in (*own, root / "trainer/base_config.py", base)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    rewarded = settings.loss_type == "policy_gradient"
    fields = policy_fields(settings, [1.0]) if rewarded else answer_fields(settings, recorded=True)
    assert keywords(fields).keys() <= known


REFUSED: list[tuple[Given, str]] = [
    ({"algorithm": "ppo"}, "baseline=value"),
    ({"algorithm": "reinforce"}, "surrogate=logp"),
    ({"algorithm": "gmpo", "aggregation": "token_mean"}, "importance_sampling_level=geometric: TRL has it in its GMPO"),
    ({"algorithm": "gmpo", "beta": 0.1, "kl_placement": "loss"}, "use_bias_correction_kl=on"),
    ({"algorithm": "gmpo", "top_entropy_quantile": 0.5}, "top_entropy_quantile=0.5"),
    ({"algorithm": "gmpo", "entropy_coef": 0.01}, "entropy_coef=0.01"),
    ({"algorithm": "gmpo", "baseline": "leave_one_out"}, "baseline=leave_one_out"),
    ({"algorithm": "rloo", "baseline": "group_mean"}, "importance_sampling_level=sequence_sum"),
    ({"algorithm": "orpo"}, "loss_type=orpo: TRL's ORPOTrainer also imitates the prompts"),
    ({"algorithm": "cdpo"}, "label_smoothing=0.1"),
    ({"algorithm": "reinforce++"}, "returns=to_go"),
    ({"algorithm": "grpo-process"}, "reward_stream=process_normalized"),
    ({"algorithm": "vineppo"}, "returns=vine"),
    ({"baseline": "leave_one_out"}, "baseline=leave_one_out"),
    ({"algorithm": "gdpo", "scale_rewards": "group"}, "scale_rewards=group"),
    ({"algorithm": "gdpo", "overlong_buffer": 4}, "overlong_buffer=4"),
    ({"scale_rewards": "whiten"}, "scale_rewards=whiten"),
    ({"kl_placement": "reward", "beta": 0.1}, "kl_placement=reward"),
    ({"kl_anchor": "old", "beta": 0.1}, "kl_anchor=old"),
    ({"num_minibatches": 3}, "num_minibatches=3"),
]


@pytest.mark.parametrize(("settings", "named"), REFUSED)
def test_what_trl_cannot_do_is_refused_by_the_setting(tmp_path: Path, settings: Given, named: str) -> None:
    writer = run_of(tmp_path, settings)
    with pytest.raises(ExportError, match=r"run\.rlplay") as refused:
        script_of(writer)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.glob("*.py*"))


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
        said = capsys.readouterr().err
        assert left.value.code == 2
        assert words in said
        assert said.count("\n") == 1
    assert (tmp_path / "there.py").read_text() == "mine"


LOST: list[tuple[Given, str]] = [
    ({"gamma": 0.9}, "gamma 0.9 has no counterpart"),
    ({"algorithm": "dapo"}, "dynamic_sampling has no counterpart"),
    ({"beta": 0.1, "kl_estimator": "k1"}, "kl_estimator k1"),
    ({"beta": 0.1, "kl_ctrl": "ziegler"}, "kl_ctrl ziegler"),
    ({"beta": 0.1, "kl_placement": "none"}, "beta 0.1"),
]


@pytest.mark.parametrize(("settings", "words"), LOST)
def test_what_is_lost_is_said_in_a_comment(tmp_path: Path, settings: Given, words: str) -> None:
    comments = [line.strip() for line in script_of(run_of(tmp_path, settings)).splitlines() if "# rlplay: " in line]
    assert any(words in comment for comment in comments)


INERT = {
    "candidates",  # only what is recorded of a run
    "labeller", "label_noise",  # in the labels that the run recorded
}  # fmt: skip
OTHER: dict[str, list[Any]] = {"epsilon_high": [0.3], "delta": [1.5], "off_policy_mask_threshold": [0.5]}


def others(name: str, value: Any) -> list[Any]:
    """Other values of a setting."""
    if words := choices(name):
        return [word for word in words if word != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, dict):
        return [{"correct": 0.5}]
    if name in OTHER:
        return OTHER[name]
    return [value + 1 if isinstance(value, int) else value / 2 + 0.01]


@pytest.mark.parametrize(
    "base",
    [
        {"algorithm": "grpo", "beta": 0.1},
        {"algorithm": "grpo", "beta": 0.1, "kl_ctrl": "ziegler"},
        {"algorithm": "cispo", "epsilon_high": 5.0, "kl_placement": "loss", "beta": 0.1},
        {"algorithm": "sapo", "kl_placement": "loss", "beta": 0.1},
        {"algorithm": "vespo", "kl_placement": "loss", "beta": 0.1},
        {"algorithm": "rloo"},
        {"algorithm": "gmpo", "kl_placement": "loss", "beta": 0.1, "use_bias_correction_kl": False},
        *({"algorithm": name} for name in ("sft", "reward-model", "robust-dpo", "dpo", "kto", "simpo", "cpo")),
    ],
)
def test_no_setting_is_passed_over_in_silence(base: Given) -> None:
    """Whatever does something under these settings, changed, changes the script: a field, a comment or a refusal."""
    before = resolve(base)
    rewarded = before.loss_type == "policy_gradient"
    groups = ("sampling", "credit", "objective", "update") if rewarded else ("update", "preferences")
    more = () if rewarded else ("num_prompts", "max_completion_length", *(["beta"] if before.beta else []))
    silent = []
    for name, knob in KNOBS.items():
        acts = (knob.group in groups or name in more) and knob.applies(msgspec.to_builtins(before))
        if not acts or name in INERT or (name == "use_bias_correction_kl" and before.kl_placement != "loss"):
            continue
        for value in others(name, getattr(before, name)):
            try:
                after = apply_all(before, {name: value})
            except ValueError:
                continue
            if _told(before) == _told(after):
                silent.append(f"{name}={value}")
    assert silent == []


def _told(settings: Settings) -> tuple[Any, ...]:
    rewarded = settings.loss_type == "policy_gradient"
    fields = policy_fields(settings, [1.0]) if rewarded else answer_fields(settings, recorded=False)
    if unsupported_setting(settings):
        return (unsupported_setting(settings),)
    stage = PlayedStage("", 1, 4, 4, settings, [], None, "")
    scenario = Scenario(name="sums", title="", question="", task="arithmetic")
    return (trainer_of(settings), *fields, *section_lines(stage, RunFacts(scenario, True, False), "MODEL", "OUT"))


def test_a_knob_turned_on_the_way_is_told_and_one_turned_before_it_holds(tmp_path: Path) -> None:
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
