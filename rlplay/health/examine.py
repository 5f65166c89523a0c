"""All checks of a run in order of gravity, and the findings that are left once consequences are removed."""

from __future__ import annotations

from rlplay.health import mismatch_checks as mismatch
from rlplay.health import policy_checks as policy
from rlplay.health import reward_checks as reward
from rlplay.health import sampler_checks as sampler
from rlplay.health import setup_checks as setup
from rlplay.health.finding import NOT_USED, Check, Evidence, Finding, Need, NoTick, Problem, Verdict
from rlplay.health.needs import ANSWERS, REWARDS_OF_ANSWERS, metric
from rlplay.health.run_kind import REWARDED
from rlplay.health.trend import WINDOW

_STALLED: set[Problem] = {"no signal", "flat"}
_MOVED: set[Problem] = {"kl", "entropy", "repetition", "truncated", "critic", *_STALLED}
"""What a policy does that was driven somewhere it should not be."""

CHECKS = (
    Check("not finite", "Numbers", setup.not_finite, setup.finite, frozenset(_MOVED)),
    Check("template", "Template", setup.template, setup.fits,
          frozenset({"no end", "same reward", "step too large", "step too small", "length", *_MOVED}),
          needs=(ANSWERS,)),
    Check("left out", "Sampler", sampler.leaves_out, sampler.samples, frozenset({"mismatch", "sampler"}),
          kinds=REWARDED),
    Check("sampler", "Sampler", sampler.other_policy, sampler.samples,
          frozenset({"mismatch", "step too large", *_MOVED}), kinds=REWARDED),
    Check("mismatch", "Sampler", mismatch.mismatch, sampler.samples, frozenset({"step too large", *_MOVED}),
          kinds=REWARDED),
    Check("no end", "End of answers", setup.no_end, setup.ends,
          frozenset({"truncated", "repetition", "same reward", *_STALLED}), kinds=REWARDED, needs=(ANSWERS,)),
    Check("temperature", "Temperature", setup.hot, setup.cool,
          frozenset({"same reward", "truncated", "no end", *_STALLED}), kinds=REWARDED, needs=(metric("entropy"),)),
    Check("same reward", "Differences in reward", reward.same, reward.differs,
          frozenset({"step too small", *_STALLED}), kinds=REWARDED, needs=(REWARDS_OF_ANSWERS,)),
    Check("inverted", "Right answers", reward.inverted, reward.upright,
          frozenset({"step too large", "gamed", *_MOVED}), kinds=REWARDED, needs=(REWARDS_OF_ANSWERS,)),
    Check("step too large", "Step size", policy.too_far, policy.steps,
          frozenset({"gamed", "length", "memorised", *_MOVED}), kinds=REWARDED),
    Check("length", "Length", reward.length, reward.beyond_length, frozenset({"memorised", *_MOVED}),
          kinds=REWARDED, needs=(REWARDS_OF_ANSWERS,)),
    Check("gamed", "Gold score", reward.gamed, reward.honest, frozenset(_MOVED), kinds=REWARDED),
    Check("repetition", "Repetition", policy.repetition, policy.varied, frozenset({"kl", "truncated"}),
          kinds=REWARDED, needs=(ANSWERS,)),
    Check("memorised", "Held-out reward", reward.memorised, reward.carries_over, frozenset({"kl", "flat"}),
          kinds=REWARDED, needs=(metric("eval_reward"),)),
    Check("entropy", "Entropy", policy.collapsed, policy.explores, frozenset({"kl", *_STALLED}),
          kinds=REWARDED, needs=(metric("entropy"),)),
    Check("kl", "KL to the reference", policy.away, policy.near, frozenset({"flat"}),
          kinds=REWARDED, needs=(metric("kl"),)),
    Check("critic", "Critic", policy.critic, policy.explains, frozenset({"flat"}), kinds=REWARDED),
    Check("step too small", "Step size", policy.too_short, policy.steps, frozenset({"flat"}), kinds=REWARDED),
    Check("truncated", "End of answers", setup.cut_costs, setup.ends, frozenset({"flat"}),
          kinds=REWARDED, needs=(ANSWERS,)),
    Check("no signal", "Signal", reward.silent, reward.signal, frozenset({"flat"}), kinds=REWARDED),
    Check("truncated", "End of answers", setup.cut_anyway, setup.ends, frozenset({"flat"}),
          kinds=REWARDED, needs=(ANSWERS,)),
    Check("flat", f"Reward over {WINDOW} updates", policy.flat, policy.risen, kinds=REWARDED,
          needs=(metric("reward"),), enough=f"{WINDOW} updates"),
)  # fmt: skip
"""The gravest first: what makes training pointless, then what drives it astray, then what only slows it down."""

_OF_TEXT: set[Problem] = {"repetition"}
"""Checks that say nothing about a walk, which has few different moves."""


def findings(run: Evidence) -> list[Finding]:
    """The problems of a run, the gravest first, without those that another one explains."""
    able = [check for check in applicable(run) if all(need.there(run) for need in check.needs)]
    found = [(check, finding) for check in able if (finding := check.look(run)) is not None]
    explained = {name for check, _ in found for name in check.explains}
    return [finding for check, finding in found if check.name not in explained]


def applicable(run: Evidence) -> list[Check]:
    """The checks that make sense for what the run learns from."""
    walks = run.newest is not None and run.newest.walks
    return [check for check in CHECKS if run.kind in check.kinds and not (walks and check.name in _OF_TEXT)]


def verdicts(run: Evidence, found: list[Finding]) -> list[Verdict]:
    """What is said of each subject that no finding is about, or explains: what has a ✓ first."""
    wrong = {finding.name for finding in found}
    hidden = {name for check in CHECKS if check.name in wrong for name in (check.name, *check.explains)}
    subjects = {check.title for check in CHECKS if check.name in wrong}
    said: dict[str, Verdict] = {}
    for check in applicable(run):
        if check.name not in hidden and check.title not in subjects and check.title not in said:
            said[check.title] = verdict(check, run)
    return sorted(said.values(), key=lambda each: not each.ticked)


def verdict(check: Check, run: Evidence) -> Verdict:
    """What is said of a check that found nothing."""
    lacking = next((need for need in check.needs if not need.there(run)), None)
    if lacking is not None:
        return _lacks(check, lacking, run)
    text = check.fine(run)
    if text and not isinstance(text, NoTick):
        return Verdict(check.title, text, ticked=True)
    enough = f": needs {check.enough}" if check.enough else ""
    return Verdict(check.title, text or f"not enough data{enough}", ticked=False)


def _lacks(check: Check, lacking: Need, run: Evidence) -> Verdict:
    if not (run.metrics_only or any(each.finished for each in run.digests)):
        return Verdict(check.title, "not enough data: no update has ended", ticked=False)
    if not run.source and not run.metrics_only:  # rlplay records all that there is
        return Verdict(check.title, NOT_USED, ticked=False)
    record = lacking.record if run.source else ""
    return Verdict(check.title, f"not recorded: {lacking.name}", ticked=False, record=record)
