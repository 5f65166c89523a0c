"""Checks that numbers are finite; if not, which of them was the first that was not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from rlplay.health.digest import Digest, TokenPlace
from rlplay.health.finding import Evidence, Finding, NoTick
from rlplay.health.finite_causes import TOLD, Told
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

_STAGES = (
    "reward", "sampler", "reference", "policy", "entropy", "advantage", "ratio", "loss", "derivative", "gradient",
    "weights",
)  # fmt: skip
"""What an update computes, in its order. Each can only be finite if those before it are."""
_OF_METRICS = (
    ("rewards/", "reward"), ("reward", "reward"), ("critic/score", "reward"), ("advantage", "advantage"),
    ("sampling/", "sampler"), ("rollout_", "sampler"), ("mismatch_kl", "sampler"), ("kl", "reference"),
    ("entropy", "entropy"), ("clip_ratio", "ratio"), ("ratio", "ratio"), ("loss", "loss"), ("grad_norm", "gradient"),
    ("weights/", "weights"),
)  # fmt: skip
"""How the names of metrics begin, with the stage that they are of; the first that fits counts."""
LOUD = ("loss", "grad_norm")
"""Metrics that are NaN first."""
RECENTLY, TWICE = 5, 2
"""With a scaler, as for fp16, one step with an infinite gradient is left out and nothing is lost."""
ALL_ZERO = 0.5
"""Share of answers that are the token 0 alone from which the sampler's numbers are no numbers."""


@dataclass(frozen=True)
class Broken:
    """The first thing of a run that was not finite: its stage, the update, and how one sees it."""

    stage: str
    update: int
    shown: str
    place: TokenPlace | None = None


def not_finite(run: Evidence) -> Finding | None:
    """A number is NaN or infinite."""
    found = _first(run)
    if found is None:
        return _all_zero(run)
    title, cause, change, settings = _told(run, found)
    return Finding("not finite", title, f"{found.shown}{_before(run, found)}", cause, change, settings, found.place)


def _first(run: Evidence) -> Broken | None:
    """What was not finite first: in the first update that has such a number, the earliest of its stages."""
    metrics = _of_metrics(run)
    if not (run.last in metrics or len([n for n in metrics if n > run.last - RECENTLY]) >= TWICE):
        return None
    update = min(metrics)
    named = metrics[update]
    stage = min((_stage(name) for name in named), key=_at)
    words = f"Update {update}: {', '.join(visible(each) for each in named[:3])} {'is' if len(named) == 1 else 'are'} "
    seen = Broken(stage, update, f"{words}NaN or infinite.")
    digest = next((each for each in run.digests if each.update == update), None)
    return seen if digest is None else _of_tokens(run, digest, seen)


def _of_metrics(run: Evidence) -> dict[int, list[str]]:
    """The names of the metrics that are not finite, by update; of another trainer those that say what broke."""
    found: dict[int, list[str]] = {}
    for name in run.history.names():
        if (not run.source or _stage(name) in _STAGES) and len(run.known(name)) < len(run.series(name)):
            for update, value in run.series(name):
                if not math.isfinite(value):
                    found.setdefault(update, []).append(name)
    for each in run.digests:
        if each.broken and (names := [n for n in each.broken if not run.source or _stage(n) in _STAGES]):
            found[each.update] = sorted({*found.get(each.update, []), *names})
    return {update: sorted(names) for update, names in found.items()}


def _stage(metric: str) -> str:
    name = metric.removeprefix("actor/").removeprefix("optim/").removeprefix("train/")
    return next((stage for begin, stage in _OF_METRICS if name.startswith(begin)), "other")


def _at(stage: str) -> int:
    return _STAGES.index(stage) if stage in _STAGES else len(_STAGES)


def _of_tokens(run: Evidence, digest: Digest, seen: Broken) -> Broken:
    """The same from the tokens on record, if one of their numbers broke before."""
    before = [each for each in run.digests if each.update < digest.update]
    for name, found in digest.unfit.items():
        if name == seen.stage:
            return replace(seen, place=digest.places.get(f"broken {name}"))
        usual = any(name in each.unfit for each in before)
        if _at(name) < _at(seen.stage) and (found.infinite or not usual):
            what = _WORDS[name]
            shown = (
                f"Update {digest.update}: {what} is NaN or infinite for {percent(found.share)} of the sampled tokens."
            )
            return Broken(name, digest.update, shown, digest.places.get(f"broken {name}"))
    return seen


_WORDS = {
    "reward": "the reward", "sampler": "the sampler's log-probability", "reference": "the reference's log-probability",
    "policy": "the policy's log-probability", "advantage": "the advantage", "ratio": "the ratio",
    "derivative": "the derivative of the loss",
}  # fmt: skip


def _before(run: Evidence, found: Broken) -> str:
    """What was finite before it."""
    norms = [x for n, x in run.known("grad_norm") if n <= found.update]
    said = f" The last finite gradient norm was {number(norms[-1])}." if norms else ""
    return said if found.stage in ("policy", "entropy", "loss", "derivative", "gradient", "weights") else ""


def _told(run: Evidence, found: Broken) -> Told:
    """What is said of the stage that broke first."""
    digest = next((each for each in run.digests if each.update == found.update), None)
    stage = found.stage
    if stage in ("policy", "entropy"):
        stage = "start" if found.update <= max(run.first, 1) else "policy"
    if stage in ("loss", "derivative"):
        stage = "empty" if digest is not None and digest.without_tokens else "loss"
    told = TOLD.get(stage, TOLD["other"])
    empty = "" if digest is None else f"{digest.without_tokens} of {digest.answers}"
    return Told(told.title, told.cause.format(rate=run.learning_rate, empty=empty), told.change, told.settings)


def _all_zero(run: Evidence) -> Finding | None:
    """Answers are the token 0 again and again: what a sampler writes that computes NaN."""
    if run.newest is None or not run.now.tokens or run.now.walks:
        return None
    text, count = run.now.all_zero
    if count < ALL_ZERO * run.now.answers or any(
        each.all_zero[1] >= ALL_ZERO * each.answers for each in run.digests[:1]
    ):
        return None
    return Finding(
        "not finite",
        "The sampler's numbers are not finite",
        f"{count} of {run.now.answers} answers of update {run.now.update} are nothing but {visible(text)} (id 0).",
        "Where all probabilities are NaN, the first token is taken. The sampler's weights are broken, or its precision "
        "overflows; the reward and the loss may still look like numbers.",
        "Go back to the last update with other answers; sample in bfloat16 or float32.",
        place=run.place("longest"),
    )


def finite(run: Evidence) -> str:
    """What was looked at."""
    if not run.finished:
        return ""
    logged = run.history.at(run.last)
    lost = [name for name in LOUD if run.series(name) and name not in logged]
    if lost:  # some trainers leave out what is not finite
        return NoTick(f"{lost[0]} was logged before, and not in update {run.last}")
    answers = sum(each.answers for each in run.digests)
    tokens = f", none of the numbers of {number(answers)} answers" if answers else ""
    return f"none of the {len(logged)} metrics of update {run.last} is NaN or inf{tokens}" if logged else ""
