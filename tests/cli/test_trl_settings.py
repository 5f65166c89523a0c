"""Every setting in a TRL script: handed over as verified, lost with a comment, or refused."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from rlplay.algorithms.apply import apply_all, resolve
from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import choices
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.trl_verl import EXPERIMENTAL, trainer_of
from rlplay.export.atomic_output import ExportError
from rlplay.export.trl.answer_configs import answer_fields
from rlplay.export.trl.limits import unsupported_setting
from rlplay.export.trl.policy_configs import policy_fields
from rlplay.export.trl.recorded_stages import PlayedStage
from rlplay.export.trl.section import RunFacts, section_lines
from rlplay.scenario.schema import Scenario
from tests.cli.trl_script import TRL, Given, keywords, run_of, script_of, with_trl
from tests.parity.ours import SIZES
from tests.parity.policy_cases import ROWS as POLICY_ROWS
from tests.parity.preference_cases import ROWS as PREFERENCE_ROWS


@pytest.mark.parametrize(("kind", "mine", "theirs"), [row[1:] for row in POLICY_ROWS])
def test_a_policy_gradient_is_handed_over_as_it_was_verified(kind: str, mine: Given, theirs: Given) -> None:
    settings = resolve(SIZES | mine | {"num_minibatches": 1})
    assert unsupported_setting(settings) is None
    fields = keywords(policy_fields(settings, [1.0]))
    verified = {name: value for name, value in theirs.items() if name != "micro_batches"}
    assert {name: fields[name] for name in verified} == verified
    assert (trainer_of(settings) or [""])[0].lower() == f"{kind}trainer"
    assert fields["per_device_train_batch_size"] == settings.num_prompts * settings.num_generations


@pytest.mark.parametrize(("kind", "mine", "theirs"), [row[1:] for row in PREFERENCE_ROWS if row[1] != "orpo"])
def test_a_loss_of_pairs_is_handed_over_as_it_was_verified(kind: str, mine: Given, theirs: Given) -> None:
    settings = resolve(mine)
    assert unsupported_setting(settings) is None
    fields = keywords(answer_fields(settings, recorded=True))
    if kind == "dpo" and len(fields["loss_type"]) == 1:
        fields["loss_type"] = fields["loss_type"][0]
    assert {name: fields[name] for name in theirs} == theirs
    assert (trainer_of(settings) or [""])[0].lower() == f"{kind}trainer"
    assert fields["per_device_train_batch_size"] == settings.num_prompts * (2 if kind == "kto" else 1)


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
    ({"algorithm": "gmpo", "use_adaptive_entropy": True}, "use_adaptive_entropy=true"),
    ({"algorithm": "gmpo", "baseline": "leave_one_out"}, "baseline=leave_one_out"),
    ({"algorithm": "rloo", "baseline": "group_mean"}, "importance_sampling_level=sequence_sum"),
    ({"algorithm": "orpo"}, "loss_type=orpo: TRL's ORPOTrainer also imitates the prompts"),
    ({"algorithm": "cdpo"}, "label_smoothing=0.1"),
    ({"algorithm": "mpo", "label_smoothing": 0.1}, "label_smoothing=0.1"),
    ({"algorithm": "mpo", "use_weighting": True}, "use_weighting=on with sft"),
    ({"algorithm": "reinforce++"}, "returns=to_go"),
    ({"algorithm": "grpo-process"}, "reward_stream=process_normalized"),
    ({"algorithm": "vineppo"}, "returns=vine"),
    ({"baseline": "leave_one_out"}, "baseline=leave_one_out"),
    ({"algorithm": "gdpo", "scale_rewards": "group"}, "scale_rewards=group"),
    ({"algorithm": "gdpo", "overlong_buffer": 4}, "overlong_buffer=4"),
    ({"scale_rewards": "whiten"}, "scale_rewards=whiten"),
    ({"algorithm": "clip-cov"}, "clip_cov_ratio=0.0002"),
    ({"algorithm": "kl-cov"}, "kl_cov_ratio=0.0002"),
    ({"surrogate": "dro"}, "surrogate=dro"),
    ({"algorithm": "maxrl"}, "scale_rewards=mean"),
    ({"algorithm": "pass-at-k"}, "pass_at_k=2: TRL pays each answer for itself"),
    ({"algorithm": "grpo-passk"}, "baseline=best_other"),
    ({"reward_clip_max": 1.0}, "reward_clip_max=1: of TRL's trainers only RLOO"),
    ({"kl_placement": "reward", "beta": 0.1}, "kl_placement=reward"),
    ({"kl_anchor": "old", "beta": 0.1}, "kl_anchor=old"),
    ({"num_minibatches": 3}, "num_minibatches=3"),
    ({"importance_sampling_mode": "geometric_mask"}, "importance_sampling_mode=geometric_mask"),
    ({"algorithm": "rloo", "importance_sampling_mode": "token_mask"}, "importance_sampling_mode=token_mask"),
    ({"algorithm": "gmpo", "router_aux_loss_coef": 0.01}, "router_aux_loss_coef=0.01: TRL's GMPOTrainer balances no"),
    ({"rollout_rs": "seq_mean_k3"}, "rollout_rs=seq_mean_k3"),
]


@pytest.mark.parametrize(("settings", "named"), REFUSED)
def test_what_trl_cannot_do_is_refused_by_the_setting(tmp_path: Path, settings: Given, named: str) -> None:
    writer = run_of(tmp_path, settings)
    with pytest.raises(ExportError, match=r"run\.rlplay") as refused:
        script_of(writer)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.glob("*.py*"))


LOST: list[tuple[Given, str]] = [
    ({"gamma": 0.9}, "gamma 0.9 has no counterpart"),
    ({"algorithm": "dapo"}, "dynamic_sampling has no counterpart"),
    ({"retokenize_turns": True}, "retokenize_turns has no counterpart"),
    ({"beta": 0.1, "kl_estimator": "k1"}, "kl_estimator k1"),
    ({"beta": 0.1, "kl_ctrl": "ziegler"}, "kl_ctrl ziegler"),
    ({"beta": 0.1, "kl_placement": "none"}, "beta 0.1"),
]


@pytest.mark.parametrize(("settings", "words"), LOST)
def test_a_setting_that_is_lost_is_a_comment(tmp_path: Path, settings: Given, words: str) -> None:
    comments = [line.strip() for line in script_of(run_of(tmp_path, settings)).splitlines() if "# rlplay: " in line]
    assert any(words in comment for comment in comments)


INERT = {
    "candidates", "observe",  # only what is recorded of a run
    "per_device_train_batch_size",  # only the memory that a step takes
    "squares",  # only of a world, which is no script
    "labeller", "label_noise", "answers_of",  # in the pairs that the run recorded
    "clip_cov_lb", "clip_cov_ub",  # of tokens that a clip_cov_ratio above 0 would draw
}  # fmt: skip


OTHER: dict[str, list[Any]] = {
    "epsilon_high": [0.3], "delta": [1.5], "off_policy_mask_threshold": [0.5], "importance_sampling_clip_min": [0.5],
    "max_tool_calling_iterations": [3], "reward_clip_min": [0.1], "reward_clip_max": [0.9], "ld_alpha": [0.5],
    "loss_weights": [{"sigmoid": 1.0, "sft": 0.5}],
}  # fmt: skip


def others(name: str, value: Any) -> list[Any]:
    """Other values of a setting."""
    if words := choices(name):
        return [word for word in words if word != value]
    if isinstance(value, bool):
        return [not value]
    if name in OTHER:
        return OTHER[name]
    if isinstance(value, dict):
        return [{"correct": 0.5}]
    return [value + 1 if isinstance(value, int) else value / 2 + 0.01]


@pytest.mark.parametrize(
    "base",
    [
        {"algorithm": "grpo", "beta": 0.1},
        {"algorithm": "grpo", "beta": 0.1, "kl_ctrl": "ziegler"},
        {"algorithm": "grpo", "beta": 0.1, "importance_sampling_mode": "token_truncate"},
        {"algorithm": "cispo", "epsilon_high": 5.0, "kl_placement": "loss", "beta": 0.1},
        {"algorithm": "sapo", "kl_placement": "loss", "beta": 0.1},
        {"algorithm": "vespo", "kl_placement": "loss", "beta": 0.1},
        {"algorithm": "rloo"},
        {"algorithm": "gmpo", "kl_placement": "loss", "beta": 0.1, "use_bias_correction_kl": False},
        *({"algorithm": name} for name in ("sft", "reward-model", "robust-dpo", "dpo", "kto", "simpo", "cpo")),
        *({"algorithm": name} for name in ("discopop", "aot")),
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
        acts = (knob.group in groups or name in more) and (
            knob.needs is None or getattr(before, knob.needs[0]) in knob.needs[1]
        )
        if not acts or name in INERT or (name == "use_bias_correction_kl" and before.kl_placement != "loss"):
            continue
        for value in others(name, getattr(before, name)):
            try:
                after = apply_all(before, {name: value})
            except ValueError:
                continue
            if exported(before) == exported(after):
                silent.append(f"{name}={value}")
    assert silent == []


def exported(settings: Settings) -> tuple[Any, ...]:
    rewarded = settings.loss_type == "policy_gradient"
    fields = policy_fields(settings, [1.0]) if rewarded else answer_fields(settings, recorded=False)
    if unsupported_setting(settings):
        return (unsupported_setting(settings),)
    scenario = Scenario(name="sums", title="", question="", task="arithmetic")
    stage = PlayedStage("", 1, 4, 4, settings, [], None, "", scenario)
    return (
        trainer_of(settings),
        *fields,
        *section_lines(stage, RunFacts(scenario, True, False, ["correct", "mentioned"]), "MODEL", "OUT"),
    )
