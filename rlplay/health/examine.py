"""All checks of a run in order of gravity, and the findings that are left once consequences are removed."""

from __future__ import annotations

from rlplay.health import collapse_checks as collapse
from rlplay.health import ending_checks as ending
from rlplay.health import finite_checks as finite
from rlplay.health import flat_checks as flat
from rlplay.health import held_out_checks as held_out
from rlplay.health import mismatch_checks as mismatch
from rlplay.health import paid_checks as paid
from rlplay.health import policy_checks as policy
from rlplay.health import rate_checks as rate
from rlplay.health import reference_checks as reference
from rlplay.health import reward_checks as reward
from rlplay.health import reward_part_checks as part
from rlplay.health import ruin_checks as ruin
from rlplay.health import sampler_checks as sampler
from rlplay.health import saturated_checks as saturated
from rlplay.health import setup_checks as setup
from rlplay.health import signal_checks as signal
from rlplay.health import spike_checks as spike
from rlplay.health import token_checks as token
from rlplay.health import turn_checks as turns
from rlplay.health import weight_checks as weight
from rlplay.health.ending_checks import CUT_SHARE, FEWEST
from rlplay.health.finding import NOT_USED, Check, Evidence, Finding, Need, NoTick, Problem, Verdict
from rlplay.health.given_rows import GIVEN_CHECKS
from rlplay.health.needs import (
    ANSWERS,
    ENDS,
    HELD_OUT,
    KL,
    NEW_LOGPROBS,
    PROMPTS,
    REFERENCE,
    REWARDS_OF_ANSWERS,
    any_of,
    metric,
)
from rlplay.health.policy_checks import CLIP_SHARE
from rlplay.health.reference_checks import IMPLICIT
from rlplay.health.run_kind import COMPARED, GIVEN, REWARDED, REWARDS
from rlplay.health.trend import WINDOW

_STALLED: set[Problem] = {"no signal", "flat"}
_MOVED: set[Problem] = {"kl", "entropy", "entropy rises", "collapse", "repetition", "truncated", "critic", *_STALLED}
"""What a policy does that was driven somewhere it should not be."""
_STUCK: set[Problem] = {"step too small", "critic", "no preference", *_STALLED}
"""What a policy does that cannot move."""

_RATE = "Learning rate"

_ENDED = any_of(ENDS, metric(CUT_SHARE))
_DIFFERED = any_of(REWARDS_OF_ANSWERS, metric("reward_std", "frac_reward_zero_std"))
_SIZED = any_of(REWARDS_OF_ANSWERS, metric("completions/mean_length"))
_MEASURED = metric("grad_norm", "weights/changed")
_SAMPLED = any_of(ANSWERS, metric(*(each.name for each in mismatch.LOGGED), "sampling/importance_sampling_ratio/mean"))
_SHIFTED = any_of(NEW_LOGPROBS, metric("kl_old"))

CHECKS = (
    Check("not finite", "Numbers", finite.not_finite, finite.finite, frozenset(_MOVED), enough="a finished update"),
    Check("template", "Template", setup.template, setup.fits,
          frozenset({"no end", "same reward", "step too large", "step too small", "length", *_MOVED}),
          needs=(ANSWERS, PROMPTS)),
    Check("others' tokens", "Tokens of others", token.of_others, token.only_own,
          frozenset({"sampler", "mismatch", *_MOVED}), needs=(ANSWERS,)),
    Check("turns", "Turns", turns.broken_turns, turns.whole_turns, frozenset({"mismatch", "sampler"}), kinds=REWARDS,
          needs=(ANSWERS,)),
    Check("end untrained", "End token", token.no_end_trained, token.ends_trained,
          frozenset({"no end", "truncated", "repetition"}), kinds=REWARDED | GIVEN - {"reward model"},
          needs=(ANSWERS,), enough=f"{token.FEWEST} answers"),
    Check("left out", "Sampler", sampler.leaves_out, sampler.samples, frozenset({"mismatch", "sampler"}),
          kinds=REWARDS, needs=(_SAMPLED,)),
    Check("sampler", "Sampler", sampler.other_policy, sampler.samples,
          frozenset({"mismatch", "step too large", "clipped", *_MOVED}), kinds=REWARDS, needs=(_SAMPLED,)),
    Check("mismatch", "Sampler", mismatch.mismatch, sampler.samples, frozenset({"step too large", "clipped", *_MOVED}),
          kinds=REWARDS, needs=(_SAMPLED,)),
    Check("reference", "Reference", reference.another_start, reference.equal_start, frozenset({"kl", "flat"}),
          needs=(any_of(REFERENCE, metric("kl", *IMPLICIT)),), kinds=REWARDS | COMPARED),
    Check("no end", "End of answers", ending.no_end, ending.ends,
          frozenset({"truncated", "repetition", "same reward", *_STALLED}), kinds=REWARDED, needs=(_ENDED,),
          enough=f"{FEWEST} answers"),
    Check("masked", "End of answers", paid.masked, ending.ends,
          frozenset({"no end", "truncated", "clipped", "no gradient", *_MOVED}), kinds=REWARDS, needs=(ANSWERS,)),
    Check("temperature", "Temperature", setup.hot, setup.cool,
          frozenset({"same reward", "truncated", "no end", *_STALLED}), kinds=REWARDS, needs=(metric("entropy"),)),
    Check("one prompt", "Prompts", held_out.one_prompt, held_out.varied, frozenset({"leaked", "memorised", *_STALLED}),
          kinds=REWARDS, needs=(ANSWERS,), enough=f"{held_out.FEW} groups"),
    Check("given away", "Prompts", held_out.given, held_out.varied, frozenset({"leaked", "memorised", *_STALLED}),
          kinds=REWARDS, needs=(ANSWERS,)),
    Check("cancelling", "Reward parts", part.cancel, part.balanced, frozenset({"same reward", *_STUCK}),
          kinds=REWARDS, needs=(ANSWERS, REWARDS_OF_ANSWERS), enough=f"{FEWEST} answers"),
    Check("saturated", "Reward parts", saturated.saturated, part.balanced,
          frozenset({"same reward", "length", *_STUCK}), kinds=REWARDS),
    Check("same reward", "Differences in reward", signal.same, signal.differs,
          frozenset({"step too small", *_STALLED}), kinds=REWARDED, needs=(_DIFFERED,),
          enough=f"{FEWEST} answers of 2 updates"),
    Check("same reward", "Differences in reward", paid.weightless, signal.differs,
          frozenset({"step too small", *_STALLED}), kinds=REWARDS, needs=(ANSWERS,)),
    Check("step too small", _RATE, rate.no_rate, rate.enough_rate, frozenset({"no gradient", "rounding", "flat"}),
          needs=(metric("learning_rate"),), enough="an update with a rate above 0"),
    Check("no gradient", "Weights", weight.no_gradient, weight.move, frozenset(_STUCK), needs=(_MEASURED,)),
    Check("rounding", "Weights", weight.rounded, weight.move, frozenset(_STUCK), needs=(_MEASURED,)),
    Check("few weights", "Weights", weight.few, weight.move, frozenset(_STUCK), needs=(_MEASURED,)),
    Check("step too small", "Weights", weight.small_steps, weight.move, frozenset({"flat"}), needs=(_MEASURED,),
          enough="3 updates"),
    *GIVEN_CHECKS,
    Check("inverted", "Right answers", reward.inverted, reward.upright,
          frozenset({"step too large", "gamed", *_MOVED}), kinds=REWARDED, needs=(ANSWERS, REWARDS_OF_ANSWERS),
          enough="20 pairs of answers to one prompt, one of them right"),
    Check("inverted", "Right answers", part.against, reward.upright,
          frozenset({"step too large", "gamed", "length", *_MOVED}), kinds=REWARDS,
          needs=(ANSWERS, REWARDS_OF_ANSWERS)),
    Check("drowned", "Reward parts", part.drowned, part.balanced, frozenset({"length", "gamed", *_STALLED}),
          kinds=REWARDS, needs=(ANSWERS, REWARDS_OF_ANSWERS)),
    Check("two prices", "Equal answers", paid.two_prices, paid.one_price,
          frozenset({"inverted", "length", "gamed", *_STALLED}), kinds=REWARDS, needs=(ANSWERS, REWARDS_OF_ANSWERS),
          enough=f"{FEWEST} answers that stand twice"),
    Check("tiny spread", "Differences in reward", part.inflated, signal.differs,
          frozenset({"length", "entropy", "repetition", *_STALLED}),
          kinds=REWARDS, needs=(ANSWERS, REWARDS_OF_ANSWERS)),
    Check("step too large", "Step size", policy.too_far, policy.steps,
          frozenset({"gamed", "length", "memorised", "clipped", *_MOVED}), kinds=REWARDS, needs=(_SHIFTED,),
          enough="5 updates that moved the policy"),
    Check("step too large", "Step size", ruin.ruined, policy.steps,
          frozenset({"gamed", "length", "memorised", "clipped", "spike", *_MOVED}), kinds=REWARDS,
          needs=(metric("reward"), metric("reward_std"))),
    Check("length", "Length", reward.length, reward.beyond_length, frozenset({"memorised", *_MOVED}),
          kinds=REWARDED, needs=(_SIZED,), enough="100 pairs of answers to one prompt"),
    Check("gamed", "Gold score", reward.gamed, reward.honest, frozenset(_MOVED), kinds=REWARDED,
          needs=(metric("reward"),), enough="5 updates with both"),
    Check("spike", "Gradient", spike.lasting, spike.steady, frozenset({"collapse", *_MOVED}), kinds=REWARDS,
          needs=(metric("grad_norm"),), enough=f"{spike.FEWEST} updates"),
    Check("collapse", "Reward kept", collapse.collapsed, collapse.kept,
          frozenset({"repetition", "entropy", "entropy rises", "kl", "truncated", *_STALLED}), kinds=REWARDS,
          needs=(metric("reward"),), enough=f"{WINDOW} updates"),
    Check("repetition", "Repetition", policy.repetition, policy.varied, frozenset({"kl", "truncated"}),
          kinds=REWARDED, needs=(ANSWERS,), enough="16 answers of 8 tokens or more"),
    Check("leaked", "Held-out reward", held_out.leaked, held_out.carries_over, frozenset({"memorised"}),
          kinds=REWARDS, needs=(HELD_OUT,)),
    Check("memorised", "Held-out reward", held_out.memorised, held_out.carries_over, frozenset({"kl", "flat"}),
          kinds=REWARDED, needs=(HELD_OUT,)),
    Check("clipped", "Clipped tokens", policy.clipped, policy.few_clipped, frozenset({"flat"}), kinds=REWARDS,
          needs=(metric(CLIP_SHARE),), enough="5 updates in which anything is clipped"),
    Check("entropy", "Entropy", policy.collapsed, policy.explores, frozenset({"kl", *_STALLED}),
          kinds=REWARDED, needs=(metric("entropy"),), enough="5 updates"),
    Check("entropy rises", "Entropy", collapse.rising, policy.explores, frozenset({"kl", *_STALLED}), kinds=REWARDS,
          needs=(metric("entropy"), metric("reward"))),
    Check("kl", "KL to the reference", policy.away, policy.near, frozenset({"flat"}),
          kinds=REWARDS, needs=(KL,)),
    Check("spike", "Gradient", spike.spike, spike.steady, frozenset({"flat"}), needs=(metric("grad_norm"),),
          enough=f"{spike.FEWEST} updates"),
    Check("negative kl", "KL to the reference", reference.negative, policy.near, frozenset({"flat"}),
          kinds=REWARDS, needs=(KL,)),
    Check("held", "KL to the reference", reference.held, policy.near, frozenset({"flat"}), kinds=REWARDS,
          needs=(metric("reward"),)),
    Check("critic", "Critic", policy.critic, policy.explains, frozenset({"flat"}), kinds=REWARDS,
          enough=f"{WINDOW} updates"),
    Check("step too small", "Step size", policy.too_short, policy.steps, frozenset({"flat"}), kinds=REWARDS,
          needs=(metric("kl_old"),)),
    Check("truncated", "End of answers", ending.cut_costs, ending.ends, frozenset({"flat"}),
          kinds=REWARDED, needs=(_ENDED,)),
    Check("no signal", "Signal", signal.silent, signal.signal, frozenset({"flat"}), kinds=REWARDED,
          enough="16 groups of 5 updates"),
    Check("truncated", "End of answers", ending.cut_anyway, ending.ends, frozenset({"flat"}),
          kinds=REWARDED, needs=(_ENDED,)),
    Check("flat", f"Reward over {WINDOW} updates", flat.flat, flat.risen, kinds=REWARDS,
          needs=(metric("reward"),), enough=f"{WINDOW} updates"),
)  # fmt: skip
"""The gravest first: what makes training pointless, then what drives it astray, then what only slows it down."""

_OF_TEXT: set[Problem] = {"repetition"}
"""Checks that say nothing about a walk, which has few different moves."""


def findings(run: Evidence) -> list[Finding]:
    """The problems of a run, the gravest first, without those that another one explains."""
    found = problems(run)
    explained = {name for check, _ in found for name in check.explains}
    left: dict[Problem, Finding] = {}
    for check, finding in found:
        if check.name not in explained:
            left.setdefault(check.name, finding)  # the gravest of one name says what the others do
    return list(left.values())


def problems(run: Evidence) -> list[tuple[Check, Finding]]:
    """The checks that found something, also what another one explains."""
    if "problems" not in run.memo:
        able = [check for check in applicable(run) if all(need.there(run) for need in check.needs)]
        run.memo["problems"] = [(check, finding) for check in able if (finding := check.look(run)) is not None]
    found: list[tuple[Check, Finding]] = run.memo["problems"]
    return found


def applicable(run: Evidence) -> list[Check]:
    """The checks that make sense for what the run learns from."""
    walks = run.newest is not None and run.newest.walks
    return [check for check in CHECKS if run.kind in check.kinds and not (walks and check.name in _OF_TEXT)]


def verdicts(run: Evidence, found: list[Finding]) -> list[Verdict]:
    """What is said of each subject that no finding is about, explains or would change: what has a ✓ first."""
    wrong = {finding.name for finding in found} | {check.name for check, _ in problems(run)}
    hidden = {name for check in CHECKS if check.name in wrong for name in (check.name, *check.explains)}
    subjects = {check.title for check in CHECKS if check.name in hidden}
    if any("learning_rate" in finding.settings for finding in found):
        subjects.add(_RATE)
    said: dict[str, Verdict] = {}
    for check in applicable(run):
        if check.title not in subjects and check.title not in said:
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
    enough = f"needs {check.enough}" if check.enough else "not enough data"
    return Verdict(check.title, text or enough, ticked=False)


def _lacks(check: Check, lacking: Need, run: Evidence) -> Verdict:
    if not (run.metrics_only or any(each.finished for each in run.digests)):
        return Verdict(check.title, "not enough data: no update has ended", ticked=False)
    if not run.source and not run.metrics_only:  # rlplay records all that there is
        return Verdict(check.title, NOT_USED, ticked=False)
    record = lacking.record if run.source else ""
    if check.title in ("Reference", "KL to the reference") and run.stated("beta") and not run.settings.beta:
        return Verdict(check.title, NOT_USED, ticked=False)
    return Verdict(check.title, f"not recorded: {lacking.name}", ticked=False, record=record)
