"""What is said of a check that found nothing: a ✓ only with the numbers that it claims, else why not."""

from __future__ import annotations

import pytest

from rlplay.health.examine import CHECKS, applicable, findings, verdict, verdicts
from rlplay.health.finding import NOT_USED, Check, Evidence, Finding, NoTick
from rlplay.health.needs import ANSWERS, any_of, metric
from rlplay.health.normal import normal
from rlplay.health.reference_numbers import ReferenceGap
from rlplay.health.run_kind import RunKind
from rlplay.health.sampler_numbers import SamplerGap, Surprise
from tests.health.evidence import curves, evidence

FOREIGN = "Test 1.0"


def nothing(_: Evidence) -> Finding | None:
    return None


def check(said: str, **rest: object) -> Check:
    return Check("kl", "Title", nothing, lambda _: said, **rest)  # type: ignore[arg-type]


def test_a_claim_is_ticked_and_a_reason_is_not() -> None:
    run = evidence()
    assert (verdict(check("0.1 nats"), run).text, verdict(check("0.1 nats"), run).ticked) == ("0.1 nats", True)
    dash = verdict(check(NoTick("the same rows")), run)
    assert (dash.text, dash.ticked) == ("the same rows", False)
    assert verdict(check(""), run).text == "not enough data"
    assert verdict(check("", enough="20 updates"), run).text == "needs 20 updates"


def test_a_check_is_not_asked_without_what_it_needs() -> None:
    def asked(run: Evidence) -> Finding | None:
        raise AssertionError(run.now)

    needy = Check("kl", "Title", asked, lambda run: str(run.now), needs=(ANSWERS,))
    run = curves(3, {"reward": [0.0, 1.0, 0.0]}, FOREIGN)
    said = verdict(needy, run)
    assert (said.ticked, said.text, said.record) == (False, "not recorded: answers", ANSWERS.record)
    assert run.metrics_only
    assert run.newest is None
    assert (run.finished, run.groups, run.batch, run.place("cut"), run.example) == (True, 1, 1, None, None)


def test_a_live_run_lacks_nothing_that_could_be_recorded() -> None:
    said = verdict(check("fine", needs=(metric("critic"),)), evidence())
    assert (said.text, said.record) == (NOT_USED, "")
    early = verdict(check("fine", needs=(metric("critic"),)), evidence(finished=False))
    assert "no update has ended" in early.text


def test_one_of_several_needs_is_enough() -> None:
    need = any_of(metric("a", "b"), ANSWERS)
    assert (need.name, need.record) == ("a or b", "log a or b")
    assert need.there(curves(1, {"b": [1.0]}))
    assert need.there(evidence())
    assert not need.there(curves(1, {"a": [float("nan")]}))


@pytest.mark.parametrize(
    ("kind", "settings", "source", "metrics"),
    [
        ("rewards", {}, "Test 1.0", ("loss",)), ("rewards", {"loss_type": "policy_gradient"}, "TRL DPOTrainer", ()),
        ("pairs", {}, "TRL 1.16.0 DPOTrainer", ()), ("pairs", {}, "", ("loss", "rewards/accuracies")),
        ("kto", {"loss_type": "kto"}, "", ()), ("kto", {}, "TRL 1.16.0 KTOTrainer", ("rewards/chosen",)),
        ("imitation", {"loss_type": "sft"}, "", ()), ("imitation", {}, "", ("loss", "eval_loss")),
        ("reward model", {"loss_type": "reward"}, "", ()), ("reward model", {}, "TRL 1.16.0 RewardTrainer", ()),
        ("distillation", {}, "TRL 1.16.0 DistillationTrainer", ()), ("rewards", {}, "verl", ("reward", "loss")),
        ("action values", {"loss_type": "sarsa"}, "", ()), ("kto", {}, "", ("loss", "kl", "rewards/chosen")),
        ("pairs", {}, "", ("kl", "rewards/chosen", "rewards/accuracies")), ("rewards", {}, "", ("loss",)),
        ("rewards", {}, "", ("eval_loss", "clip_ratio/region_mean")), ("reward model", {}, "", ("accuracy", "margin")),
        ("distillation", {}, "", ("loss", "completions/mean_length", "entropy")),
        ("rewards", {}, "", ("loss", "completions/mean_length", "reward")),
    ],
)  # fmt: skip
def test_what_a_run_learns_from(
    kind: RunKind, settings: dict[str, object], source: str, metrics: tuple[str, ...]
) -> None:
    run = curves(2, {name: [0.0, 0.0] for name in metrics}, source, **settings)
    assert run.kind == kind
    assert all(kind in each.kinds for each in applicable(run))


def ticks(run: Evidence) -> set[str]:
    return {each.title for each in verdicts(run, findings(run)) if each.ticked}


def test_one_name_is_found_once() -> None:
    small = {"learning_rate": [1e-8] * 6, "weights/step": [1e-9] * 6, "grad_norm": [1.0] * 6, "kl_old": [1e-12] * 6}
    found = findings(evidence(series=small | {"reward_std": [0.5] * 6}, settings={"learning_rate": 1e-8}))
    assert [each.title for each in found] == ["The learning rate is far too small"]


def test_nothing_is_ticked_that_a_finding_doubts() -> None:
    """Neither what it explains, under any of the subject's checks, nor the setting that it would change."""
    calm = {"kl": [0.0, 0.01, 0.02, 0.02, 0.02, 0.02], "learning_rate": [0.04] * 6}
    assert {"KL to the reference", "Learning rate"} <= ticks(evidence(series=calm))
    assert "KL to the reference" not in ticks(evidence(series=calm, reference=ReferenceGap(0.5, False, 0)))
    assert "Learning rate" not in ticks(evidence(series=calm, shift=0.5))


LOGGED = (
    "reward", "reward_std", "frac_reward_zero_std", "entropy", "kl", "loss", "grad_norm", "learning_rate",
    "completions/clipped_ratio", "clip_ratio/region_mean", "kl_old", "eval_reward", "eval_loss", "rewards/chosen",
    "rewards/rejected", "rewards/accuracies", "rewards/margins", "logps/chosen", "logps/rejected", "accuracy", "margin",
    "mean_token_accuracy", "weights/changed", "weights/step", "explained_variance",
    "sampling/sampling_logp_difference/mean",
)  # fmt: skip


@pytest.mark.parametrize("source", ["", "DPOTrainer", "KTOTrainer", "SFTTrainer", "RewardTrainer", "GKDTrainer"])
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, float("nan")])
@pytest.mark.parametrize("updates", [1, 2, 30])
def test_every_check_runs_on_numbers_alone(updates: int, value: float, source: str) -> None:
    run = curves(updates, {name: [value] * updates for name in LOGGED}, source)
    found = findings(run)
    for each in verdicts(run, found):
        assert each.text
        assert not (each.ticked and each.record)
    assert all(each.text for each in normal(run))


def test_checks_of_one_subject_make_one_claim() -> None:
    claims: dict[str, object] = {}
    for each in CHECKS:
        assert claims.setdefault(each.title, each.fine) is each.fine, each.title


def test_what_a_hidden_finding_is_about_has_no_tick() -> None:
    """The mismatch of a sampler that leaves tokens out is explained, and what the mismatch explains is, too."""
    gap = SamplerGap(1000, 0.9, 0.001, 500, 0, 0.2, None, None)
    colder = Surprise(1000, 100.0, 500.0, 500.0)
    run = evidence(gap=gap, surprise=colder, apart=True, repeats=0.9, long_answers=16, source="TRL")
    found = findings(run)
    assert [each.name for each in found] == ["left out"]
    assert "Repetition" not in [each.title for each in verdicts(run, found)]
