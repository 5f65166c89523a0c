"""The number of each problem: one value per update, by which a rehearsal is judged."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean

from rlplay.health.counts import GOLD_COLUMNS, WinCount
from rlplay.health.digest import Digest
from rlplay.health.ending_checks import CUT_SHARE
from rlplay.health.finding import Evidence, Finding, Points, Problem
from rlplay.health.policy_checks import CLIP_SHARE, EXPLAINED, STILL
from rlplay.health.run_kind import REWARDED
from rlplay.trace.numbers import number, percent


@dataclass(frozen=True)
class Measure:
    """A number of each update that shows a problem. It is better the lower it is, or with `more` the higher.

    `place` names the tokens that show it, as in `Digest.places`.
    """

    name: str
    series: Callable[[Evidence], Points]
    more: bool = False
    share: bool = False
    place: str = "moved"
    least: float = 0.0
    """A difference below which nothing is claimed."""
    wild: bool = False
    """Whether it leaps from update to update: then the largest counts, and only a large difference says anything."""
    settles: bool = False
    """Whether a run that has no such number has no such problem."""

    def of(self, run: Evidence) -> float | None:
        """Its mean over the updates of `run`, of a wild one the largest; None if it has none."""
        values = [x for _, x in self.series(run) if math.isfinite(x)]
        return None if not values else max(values) if self.wild else fmean(values)

    def shown(self, value: float) -> str:
        """The number as text."""
        return percent(value) if self.share else number(value, noise=1e-12)


def metric(name: str, title: str = "", *, more: bool = False, share: bool = False, place: str = "moved") -> Measure:
    """A metric of the run."""
    return Measure(title or name, lambda run: run.known(name), more, share, place)


def digested(
    name: str, value: Callable[[Digest], float | None], *, more: bool = False, share: bool = False,
    place: str = "moved",
) -> Measure:  # fmt: skip
    """A number of the update's digest."""
    return Measure(
        name, lambda run: [(each.update, x) for each in run.digests if (x := value(each)) is not None], more, share,
        place,
    )  # fmt: skip


def _cut(each: Digest) -> float | None:
    return each.cut / each.answers if each.ends_known else None


def _by_length(each: Digest) -> float | None:
    """The share of the pairs that length decides, in the unit in which it decides more."""
    shares = [max(won.share, 1 - won.share) for won in each.longer.values() if won.all]
    return max(shares, default=None)


def _right(each: Digest) -> float | None:
    """The share of the pairs in which the right answer earned more, by a gold score, else by a column."""
    columns = {name: won for name, won in each.gold.items() if name.lower() in GOLD_COLUMNS} or each.gold
    told = [*each.scores.values(), *columns.values()]
    known: WinCount | None = next((won for won in told if won.all), None)
    return None if known is None else known.share


def _apart(each: Digest) -> float | None:
    return each.twice.apart / each.twice.repeated if each.twice and each.twice.repeated else None


def _tiny(each: Digest) -> float | None:
    return each.tiny.tiny / each.tiny.groups if each.tiny and each.tiny.groups else None


def _broken(each: Digest) -> float:
    return float(len(each.broken) + len(each.unfit))


def _excess(each: Digest) -> float | None:
    """How far −log p of the sampled tokens is from the entropy, nats per token."""
    found = each.surprise
    return abs(found.excess) / found.tokens if found is not None and found.tokens else None


def _away(each: Digest) -> float | None:
    """The KL of sampler and policy where the sampler's own log-probabilities are on record, else `_excess`."""
    return each.mismatch if each.apart else _excess(each)


def _equal(run: Evidence) -> Points:
    """The share of the groups whose answers all earn the same; where no group is known, of the updates."""
    return run.known("frac_reward_zero_std") or [(n, float(x == 0)) for n, x in run.known("reward_std")]


def _gap(run: Evidence) -> Points:
    """The reward of training minus that of held-out prompts, at each evaluation."""
    trained = dict(run.known("reward"))
    return [(n, trained[n] - x) for n, x in run.known("eval_reward") if n in trained]


def _weighed(run: Evidence) -> Points:
    """How many times the answers of one label count as much as those of the other."""
    weights = run.settings.desirable_weight, run.settings.undesirable_weight
    counted = [(each.update, each.pairs) for each in run.digests if each.pairs is not None]
    both = [(n, (weights[0] * max(p.chosen, 0.5), weights[1] * max(p.rejected, 0.5))) for n, p in counted]
    return [(n, max(two) / min(two)) for n, two in both]


def _falling(run: Evidence, found: Finding) -> Measure:
    """The score that fell while the reward rose, by its name in the finding's evidence."""
    kind, title = ("gold", "the gold score") if "gold score" in found.evidence else ("rewards", "the part")
    names = [name for name in run.history.names() if name.startswith(f"{kind}/") and name.endswith("/mean")]
    said = {name: name[len(kind) + 1 : -len("/mean")] for name in names}
    chosen = next((name for name in names if f"“{said[name]}”" in found.evidence), "reward")
    return metric(chosen, f"{title} “{said.get(chosen, chosen)}”", more=True)


DISTANCE = "distance of sampler and policy"
EQUAL = Measure("groups that earn the same", _equal, share=True)
RIGHT = digested("pairs in which the right answer earns more", _right, more=True, share=True)
CUT_ANSWERS = digested("answers that are cut", _cut, share=True, place="cut")
LOSS, REWARD = metric("loss"), metric("reward", more=True)

MEASURES: dict[Problem, Measure] = {
    "not finite": digested("numbers that are not finite", _broken),
    "no end": CUT_ANSWERS,
    "truncated": CUT_ANSWERS,
    "masked": digested("answers that are masked", lambda each: each.cut_masked / each.answers, share=True, place="cut"),
    "temperature": metric("entropy"),
    "entropy rises": metric("entropy"),
    "entropy": metric("entropy", more=True),
    "same reward": EQUAL,
    "no signal": EQUAL,
    "cancelling": EQUAL,
    "saturated": EQUAL,
    "inverted": RIGHT,
    "drowned": RIGHT,
    "two prices": digested("repeated answers that earn differently", _apart, share=True),
    "tiny spread": digested("groups whose differences are tiny", _tiny, share=True),
    "step too large": replace(
        digested("probability that an update moves", lambda each: each.shift, share=True), wild=True
    ),
    "step too small": replace(metric("kl_old", "KL of an update", more=True), least=STILL),
    "length": digested("pairs that length decides", _by_length, share=True),
    "repetition": digested("tokens that repeat", lambda each: each.repeats, share=True, place="repeated"),
    "memorised": Measure("training reward above held-out", _gap),
    "kl": metric("kl"),
    "negative kl": metric("kl", more=True),
    "critic": Measure(
        "explained_variance", lambda run: run.known("explained_variance"), more=True, least=EXPLAINED, settles=True
    ),
    "flat": REWARD,
    "held": REWARD,
    "collapse": REWARD,
    "clipped": metric(CLIP_SHARE, "tokens that are clipped", share=True),
    "spike": replace(metric("grad_norm", place="pulled"), wild=True),
    "rounding": metric("weights/changed", "weights that change", more=True, share=True),
    "mismatch": digested(DISTANCE, _away, place="mismatch"),
    "sampler": digested(DISTANCE, _away, place="unlikely"),
    "left out": digested(DISTANCE, _away, place="mismatch"),
    "lopsided": Measure("weight of one label over the other's", _weighed),
    "displaced": metric("logps/chosen", more=True),
    "no preference": metric("rewards/accuracies", more=True, share=True),
    "overfit": metric("eval_loss"),
    "turns": replace(metric("retokenized/tokens", "sampled tokens that are not trained on", share=True), settles=True),
}


def measure(run: Evidence, found: Finding) -> Measure:
    """The number of a finding: of a problem that no setting mends, that of what is trained."""
    if found.name == "gamed":
        return _falling(run, found)
    if run.kind not in REWARDED and found.name in ("step too large", "step too small", "flat"):
        return LOSS
    if found.name in ("no end", "truncated") and not CUT_ANSWERS.series(run):
        return metric(CUT_SHARE, CUT_ANSWERS.name, share=True)
    return MEASURES.get(found.name) or (REWARD if run.kind in REWARDED else LOSS)
