"""Which changed settings each problem would try, from the run's own settings and the finding's numbers.

They are what a practitioner changes first, and few: each costs as many updates as the run as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rlplay.algorithms.apply import apply_all
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.settings import Settings
from rlplay.health.finding import Evidence, Finding, Problem
from rlplay.health.own_sampler import cures
from rlplay.health.remedies.paid import another_price, balanced_parts, other_parts, turned
from rlplay.health.remedies.remedy import Remedy

MOST = 4
"""Remedies of a finding, at most."""
TIMES = {
    10: "ten times",
    100: "a hundred times",
    1000: "a thousand times",
    3: "three times",
    2: "twice",
    4: "four times",
}
SHARES = {3: "a third of", 10: "a tenth of", 30: "a thirtieth of", 2: "half of", 4: "a quarter of"}
NAMES = {
    "learning_rate": "the learning rate",
    "max_completion_length": "the limit of tokens",
    "temperature": "the temperature",
    "max_grad_norm": "the largest gradient norm",
    "entropy_coef": "the entropy bonus",
    "num_iterations": "the steps on each batch",
    "num_generations": "the answers to each prompt",
    "num_prompts": "the prompts",
}
USUAL_BETA, STRONG_BETA = 0.05, 0.2
"""A β that trainers use with rewards, and a strong one: GRPO on sums learns with either."""

Tried = Iterable[Remedy]


def less(run: Evidence, name: str, *divisors: int) -> Iterator[Remedy]:
    """A setting divided by each of the numbers, whole where it is whole and at least 1."""
    value = getattr(run.settings, name)
    for divisor in divisors:
        small: Any = max(1, value // divisor) if isinstance(value, int) else float(f"{value / divisor:.3g}")
        exact = value == small * divisor or isinstance(value, float)
        words = f"{SHARES[divisor]} {NAMES.get(name, name)}" if exact else f"{name} {small}"
        yield Remedy(words, {name: small})


def more(run: Evidence, name: str, *factors: int) -> Iterator[Remedy]:
    """A setting times each of the numbers, as far as it may go."""
    value, high = getattr(run.settings, name), KNOBS[name].high
    for factor in factors:
        large = type(value)(float(f"{value * factor:.3g}"))
        if high is None or large <= high:
            yield Remedy(f"{TIMES[factor]} {NAMES.get(name, name)}", {name: large})


def instead(label: str, **changes: Any) -> Iterator[Remedy]:
    """These settings, whatever they are now."""
    yield Remedy(label, changes)


def held_more(run: Evidence) -> Iterator[Remedy]:
    """A KL term, or a stronger one."""
    if run.settings.beta >= USUAL_BETA:
        yield from more(run, "beta", 4, 10)
        return
    for beta, how in ((USUAL_BETA, "a KL term"), (STRONG_BETA, "a strong KL term")):
        yield Remedy(f"{how}, beta {beta}", {"beta": beta, "kl_placement": "loss", "kl_anchor": "ref"})


def _smaller_steps(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    if run.settings.num_iterations > 1:
        yield from instead("one step on each batch", num_iterations=1)
        yield from less(run, "num_iterations", 4)
    yield from less(run, "learning_rate", 3, 10, 30)


def _larger_steps(run: Evidence, found: Finding) -> Iterator[Remedy]:
    if run.settings.warmup_steps:
        yield from instead("no warm-up", warmup_steps=0)
    if not run.settings.learning_rate:
        usual = Settings().learning_rate
        yield from instead(f"a learning rate of {usual}", learning_rate=usual)
    yield from more(
        run, "learning_rate", *((3, 10) if run.kind == "imitation" or found.name == "flat" else (10, 100, 1000))
    )


def _longer(run: Evidence, found: Finding) -> Iterator[Remedy]:
    if "mask_truncated_completions" in found.settings:
        yield from instead("cut answers in the loss", mask_truncated_completions=False)
    yield from more(run, "max_completion_length", 2, 4)


def _cooler(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from instead("the model's own temperature", temperature=1.0)
    if run.settings.temperature > 1:
        yield from less(run, "temperature", 2)


def _agreed(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    for label, changes in cures(run):
        yield from instead(label, **changes)


def _whole_sampler(run: Evidence, found: Finding) -> Iterator[Remedy]:
    yield from _agreed(run, found)
    if "logprobs_mode" in found.settings:
        yield from instead("log-probabilities before the cut", logprobs_mode="raw_logprobs")
    yield from instead("samples from all tokens", top_p=1.0, top_k=0, min_p=0.0)
    yield from instead("samples at temperature 1 from all tokens", temperature=1.0, top_p=1.0, top_k=0, min_p=0.0)


def _explored(run: Evidence, found: Finding) -> Iterator[Remedy]:
    if "entropy_coef" in found.settings:
        yield from instead("no price on being undecided", entropy_coef=0.0)
    if run.settings.kind == "action values":
        yield from more(run, "exploration_rate", 3)
        return
    yield from less(run, "learning_rate", 3, 10)
    yield from instead("a small entropy bonus", entropy_coef=0.01)


def _steadied(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    if run.settings.entropy_coef > 0:
        yield from instead("no entropy bonus", entropy_coef=0.0)
        yield from less(run, "entropy_coef", 10)
    yield from less(run, "learning_rate", 3, 10)


def _criticised(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    now = run.settings.vf_coef
    for value in (0.1, 1.0):
        if value > now:
            yield from instead(f"a critic that learns, vf_coef {value}", vf_coef=value)
    if run.settings.num_generations > 1:
        yield from instead("a group baseline, which needs no critic", baseline="group_mean", returns="broadcast")


def _held_less(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from less(run, "beta", 10, 30)
    yield from instead("no KL term", beta=0.0)


def _near(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from held_more(run)
    yield from less(run, "learning_rate", 3, 10)


def _kl_measured_well(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from instead("the KL's estimator k3", kl_estimator="k3")
    yield from _whole_sampler(run, _found)


def _unclipped(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    if run.settings.num_iterations > 1:
        yield from instead("one step on each batch", num_iterations=1)
        yield from less(run, "num_iterations", 2)
    yield from less(run, "learning_rate", 3, 10)


def _warmer(run: Evidence) -> Iterator[Remedy]:
    """Answers that differ more, where little but the likeliest token is drawn."""
    if run.settings.temperature < 1:
        yield from instead("the model's own temperature", temperature=1.0)


def _paid_apart(run: Evidence, found: Finding) -> Iterator[Remedy]:
    yield from _warmer(run)
    yield from another_price(run, found)


def _compared(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from _warmer(run)
    yield from more(run, "num_generations", 2, 4)
    if not run.settings.dynamic_sampling and run.settings.num_generations > 1:
        yield from instead("prompts drawn until their answers differ", dynamic_sampling=True)


def _not_varied(run: Evidence, found: Finding) -> Iterator[Remedy]:
    yield from another_price(run, found)
    yield from held_more(run)
    yield from less(run, "learning_rate", 3)


def _gamed(run: Evidence, found: Finding) -> Iterator[Remedy]:
    yield from another_price(run, found)
    yield from held_more(run)


def _bounded(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from less(run, "max_grad_norm", 10)
    yield from less(run, "learning_rate", 3, 10)


def _kept(run: Evidence, found: Finding) -> Iterator[Remedy]:
    if "max_completion_length" in found.settings:
        yield from more(run, "max_completion_length", 2)
    if "max_grad_norm" in found.settings:
        yield from less(run, "max_grad_norm", 10)
    yield from less(run, "learning_rate", 3, 10)
    yield from held_more(run)


def _unscaled(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from instead("advantages that are not scaled", scale_rewards="none")
    if run.settings.scale_rewards == "group":
        yield from instead("advantages scaled over the batch", scale_rewards="batch")


def _finite(run: Evidence, found: Finding) -> Iterator[Remedy]:
    by_setting: dict[str, Callable[[], Tried]] = {
        "learning_rate": lambda: less(run, "learning_rate", 3, 10),
        "max_grad_norm": lambda: less(run, "max_grad_norm", 10),
        "scale_rewards": lambda: instead("advantages that are not scaled", scale_rewards="none"),
        "beta": lambda: instead("no KL term", beta=0.0),
        "delta": lambda: instead("a bound on the ratio", delta=2.0),
        "importance_sampling_level": lambda: instead("a ratio per token", importance_sampling_level="token"),
        "reward_weights": lambda: another_price(run, found),
    }
    for name in found.settings:
        yield from by_setting[name]() if name in by_setting else ()


def _carried_over(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from held_more(run)
    yield from less(run, "learning_rate", 3, 10)


def _balanced_labels(run: Evidence, found: Finding) -> Iterator[Remedy]:
    rare = "desirable_weight" if "chosen" in found.title else "undesirable_weight"
    yield from more(run, rare, 3, 10)


def _preferred(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from more(run, "learning_rate", 3, 10)
    yield from less(run, "beta", 3)


def _stayed_likely(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from more(run, "beta", 3)
    yield from less(run, "learning_rate", 3, 10)


def _risen(run: Evidence, found: Finding) -> Iterator[Remedy]:
    falls = "falls" in found.title
    for name in found.settings:
        match name:
            case "learning_rate":
                yield from less(run, name, 3, 10) if falls else more(run, name, 3, 10)
            case "beta":
                yield from less(run, name, 10)
            case "num_iterations":
                yield from instead("one step on each batch", num_iterations=1)
            case "num_generations" | "num_prompts":
                yield from more(run, name, 2)
                yield from more(run, "learning_rate", 3)


def _rounds_less(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from more(run, "learning_rate", 10, 100)


def _slower(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from less(run, "learning_rate", 3, 10)


def _as_sampled(_run: Evidence, _found: Finding) -> Iterator[Remedy]:
    yield from instead("the tokens that were sampled", retokenize_turns=False)


TRIED: dict[Problem, Callable[[Evidence, Finding], Tried]] = {
    "not finite": _finite,
    "no end": _longer,
    "temperature": _cooler,
    "same reward": _paid_apart,
    "inverted": turned,
    "step too large": _smaller_steps,
    "length": another_price,
    "gamed": _gamed,
    "repetition": _not_varied,
    "memorised": _carried_over,
    "entropy": _explored,
    "kl": _near,
    "critic": _criticised,
    "step too small": _larger_steps,
    "truncated": _longer,
    "no signal": _compared,
    "flat": _risen,
    "clipped": _unclipped,
    "rounding": _rounds_less,
    "mismatch": _agreed,
    "sampler": _whole_sampler,
    "left out": _whole_sampler,
    "spike": _bounded,
    "negative kl": _kl_measured_well,
    "held": _held_less,
    "cancelling": other_parts,
    "tiny spread": _unscaled,
    "collapse": _kept,
    "entropy rises": _steadied,
    "lopsided": _balanced_labels,
    "displaced": _stayed_likely,
    "no preference": _preferred,
    "overfit": _slower,
    "saturated": balanced_parts,
    "two prices": other_parts,
    "masked": _longer,
    "drowned": balanced_parts,
    "turns": _as_sampled,
}
"""By problem, what to try."""

UNTRIED: dict[Problem, str] = {
    "template": "the chat template is a file of the model, no setting of training",
    "no gradient": "which weights are trained is decided where the model is loaded, by no setting",
    "few weights": "which weights are trained is decided where the model is loaded, by no setting",
    "reference": "the reference is a model, no setting",
    "same answers": "the pairs are data: compare the columns chosen and rejected",
    "swapped": "the labels are data: swap the columns chosen and rejected",
    "one length": "the pairs are data: add some in which length says something else",
    "no labels": "the labels are made where the data are tokenized, by no setting",
    "same teacher": "the teacher is a model, no setting",
    "leaked": "the held-out prompts are data: take those out that are trained on",
    "one prompt": "the prompts are data: count the different ones",
    "given away": "the prompts are data: leave the right answer out of them",
    "others' tokens": "the mask of the answers is made by the code that samples them, by no setting",
    "end untrained": "the end of the answers is dropped by the code that makes the batch, by no setting",
}
"""The problems whose advice is no setting: why nothing can be tried."""


def remedies(run: Evidence, found: Finding) -> tuple[Remedy, ...]:
    """What to try for a finding, at most `MOST`: settings that fit together, and that the run does not have already."""
    tried: list[Remedy] = []
    for each in TRIED[found.name](run, found) if found.name in TRIED and found.settings else ():
        if _fits(run.settings, each) and each.changes not in [known.changes for known in tried]:
            tried.append(each)
    return tuple(tried[:MOST])


def _fits(settings: Settings, remedy: Remedy) -> bool:
    try:
        return apply_all(settings, remedy.changes) != settings
    except ValueError:
        return False
