"""All checks of a run in order of gravity, and the findings that are left once consequences are removed."""

from __future__ import annotations

from rlplay.health import policy_checks as policy
from rlplay.health import reward_checks as reward
from rlplay.health import setup_checks as setup
from rlplay.health.finding import Check, Evidence, Finding, Problem
from rlplay.health.trend import WINDOW

_STALLED: set[Problem] = {"no signal", "flat"}
_MOVED: set[Problem] = {"kl", "entropy", "repetition", "truncated", "critic", *_STALLED}
"""What a policy does that was driven somewhere it should not be."""

CHECKS = (
    Check("not finite", "Numbers", setup.not_finite, setup.finite, frozenset(_MOVED)),
    Check("template", "Template", setup.template, setup.fits,
          frozenset({"no end", "same reward", "step too large", "step too small", "length", *_MOVED})),
    Check("mismatch", "Sampler", setup.mismatch, setup.agrees, frozenset({"step too large", *_MOVED})),
    Check("no end", "End of answers", setup.no_end, setup.ends,
          frozenset({"truncated", "repetition", "same reward", *_STALLED})),
    Check("temperature", "Temperature", setup.hot, setup.cool,
          frozenset({"same reward", "truncated", "no end", *_STALLED})),
    Check("same reward", "Differences in reward", reward.same, reward.differs,
          frozenset({"step too small", *_STALLED})),
    Check("inverted", "Right answers", reward.inverted, reward.upright,
          frozenset({"step too large", "gamed", *_MOVED})),
    Check("step too large", "Step size", policy.too_far, policy.steps,
          frozenset({"gamed", "length", "memorised", *_MOVED})),
    Check("length", "Length", reward.length, reward.beyond_length, frozenset({"memorised", *_MOVED})),
    Check("gamed", "Gold score", reward.gamed, reward.honest, frozenset(_MOVED)),
    Check("repetition", "Repetition", policy.repetition, policy.varied, frozenset({"kl", "truncated"})),
    Check("memorised", "Held-out reward", reward.memorised, reward.carries_over, frozenset({"kl", "flat"})),
    Check("entropy", "Entropy", policy.collapsed, policy.explores, frozenset({"kl", *_STALLED})),
    Check("kl", "KL to the reference", policy.away, policy.near, frozenset({"flat"})),
    Check("critic", "Critic", policy.critic, policy.explains, frozenset({"flat"})),
    Check("step too small", "Step size", policy.too_short, policy.steps, frozenset({"flat"})),
    Check("truncated", "End of answers", setup.cut_costs, setup.ends, frozenset({"flat"})),
    Check("no signal", "Signal", reward.silent, reward.signal, frozenset({"flat"})),
    Check("truncated", "End of answers", setup.cut_anyway, setup.ends, frozenset({"flat"})),
    Check("flat", f"Reward over {WINDOW} updates", policy.flat, policy.risen),
)  # fmt: skip
"""The gravest first: what makes training pointless, then what drives it astray, then what only slows it down."""

_OF_ANY_KIND: set[Problem] = {"not finite", "template"}
"""Checks that need no rewards."""
_OF_TEXT: set[Problem] = {"repetition"}
"""Checks that say nothing about a walk, which has few different moves."""


def findings(run: Evidence) -> list[Finding]:
    """The problems of a run, the gravest first, without those that another one explains."""
    found = [(check, finding) for check in applicable(run) if (finding := check.look(run)) is not None]
    explained = {name for check, _ in found for name in check.explains}
    return [finding for check, finding in found if check.name not in explained]


def applicable(run: Evidence) -> list[Check]:
    """The checks that make sense for what the run learns from."""
    if run.settings.rewarded:
        return [check for check in CHECKS if not (run.now.walks and check.name in _OF_TEXT)]
    return [check for check in CHECKS if check.name in _OF_ANY_KIND]


def passed(run: Evidence, found: list[Finding]) -> list[tuple[str, str]]:
    """The title of each check that found nothing, with its numbers; empty if there are too few to tell.

    Checks of a finding's own subject are left out, as are those that it explains.
    """
    wrong = {finding.name for finding in found}
    hidden = {name for check in CHECKS if check.name in wrong for name in (check.name, *check.explains)}
    subjects = {check.title for check in CHECKS if check.name in wrong}
    fine: dict[str, str] = {}
    for check in applicable(run):
        if check.name not in hidden and check.title not in subjects:
            fine.setdefault(check.title, check.fine(run))
    return list(fine.items())
