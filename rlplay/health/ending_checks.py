"""Checks of how answers end: whether any does, and whether many are cut."""

from __future__ import annotations

from collections import Counter

from rlplay.health.digest import Digest
from rlplay.health.finding import Evidence, Finding
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

HALF = 0.5
FEWEST = 32
"""Answers before "none of them" means anything: a share of 10 % would leave no trace in 32 with probability 3 %."""
SOME = 16
"""Answers of which more than `CUT` being cut is hardly chance: if 10 % are cut, 5 of 16 are with probability 2 %."""
SEVERAL = 5
"""Updates that have that many answers for certain, where nothing says how many."""
OF_LATE = 3
CUT = 0.3
CUT_SHARE = "completions/clipped_ratio"


def no_end(run: Evidence) -> Finding | None:
    """Not one answer has ended."""
    if not _known(run):
        return _none_by_metrics(run)
    cut = sum(each.cut for each in run.digests)
    if cut < run.answers or run.answers < FEWEST:
        return None
    within: Counter[str] = sum((each.marks_within for each in run.digests), Counter())
    tails: Counter[str] = sum((each.tails for each in run.digests), Counter())
    mark, marked = within.most_common(1)[0] if within else ("", 0)
    evidence = f"All {cut} answers so far were cut{_limit(run.now)}; not one ended."
    place = run.place("cut")
    if marked >= HALF * run.answers:
        ends = ", ".join(f"{visible(text)} (id {token})" for token, text in sorted(run.ends.items()))
        waits = f" The run waits for {ends}." if ends else ""
        return Finding(
            "no end",
            "No answer ever ends",
            f"{evidence} {marked} of them contain {visible(mark)}, and go on.{waits}",
            f"The model ends its answers with {visible(mark)}, but the run does not stop there.",
            f"Set eos_token_id in the model's generation_config.json, and the tokenizer's eos_token, to "
            f"{visible(mark)}.",
            place=run.now.places.get("mark", place),
        )
    said, count = tails.most_common(1)[0]
    return Finding(
        "no end",
        "No answer ever ends",
        f"{evidence} The commonest last words are “{visible(said.strip())}”, in {count} of them.",
        "The model needs more tokens than it gets, or it has never learned to end an answer.",
        "Raise max_completion_length; if answers still do not end, check the model's end token, or train on examples "
        "first.",
        ("max_completion_length",),
        place,
    )


def _known(run: Evidence) -> bool:
    """Whether the newest answers are on record, with which of them were cut."""
    return run.newest is not None and run.newest.ends_known


def _none_by_metrics(run: Evidence) -> Finding | None:
    cut = [share for _, share in run.known(CUT_SHARE)]
    if not cut or min(cut) < 1 or (len(cut) * run.batch < FEWEST and len(cut) < SEVERAL):
        return None
    longest = run.mean("completions/max_length", 1)
    limit = "" if longest is None else f" at {number(longest)} tokens"
    return Finding(
        "no end",
        "No answer ever ends",
        f"All answers of all {len(cut)} updates so far were cut{limit}; not one ended.",
        "The model needs more tokens than it gets, it has never learned to end an answer, or its end token is not the "
        "one that the sampler stops at.",
        "Raise max_completion_length; if answers still do not end, compare the end of an answer with eos_token_id in "
        "the model's generation_config.json.",
        ("max_completion_length",),
    )


def _limit(now: Digest) -> str:
    """Where answers were cut; nothing if their words stand for tokens."""
    return f" at {now.limit} tokens" if now.tokens else ""


def cut_costs(run: Evidence) -> Finding | None:
    """Many answers are cut, and earn less for it, or nobody can tell."""
    return _truncated(run) if _earned(run)[0] else None


def cut_anyway(run: Evidence) -> Finding | None:
    """Many answers are cut, and earn no less than those that end."""
    return None if _earned(run)[0] else _truncated(run)


def _earned(run: Evidence) -> tuple[bool, str]:
    """Whether cut answers may earn less for being cut, and what they and the others earned of late."""
    last = run.recent(3)
    ended = [each.ended_earned for each in last if each.ended_earned is not None]
    cut = [each.cut_earned for each in last if each.cut_earned is not None]
    if not ended or not cut:
        return True, ""
    one, other = sum(ended) / len(ended), sum(cut) / len(cut)
    return one > other, f" They earned {number(other)} on average, those that ended {number(one)}."


def _truncated(run: Evidence) -> Finding | None:
    if not _known(run):
        return _many_by_metrics(run)
    last = _newest(run)
    cut, answers = sum(each.cut for each in last), sum(each.answers for each in last)
    if answers < SOME or cut <= CUT * answers:
        return None
    return Finding(
        "truncated",
        "Many answers are cut",
        f"{cut} of {'the last ' * (len(last) > 1)}{answers} answers were cut{_limit(run.now)}.{_earned(run)[1]}",
        "The limit is shorter than what the model writes, so a cut answer loses what it had not finished.",
        "Raise max_completion_length.",
        ("max_completion_length",),
        run.place("cut"),
    )


def _newest(run: Evidence) -> list[Digest]:
    """The newest digest, and as many before it as it takes to have `SOME` answers."""
    last: list[Digest] = []
    for each in reversed(run.digests):
        if sum(known.answers for known in last) >= SOME or not each.ends_known:
            break
        last.append(each)
    return last


def _many_by_metrics(run: Evidence) -> Finding | None:
    share = run.mean(CUT_SHARE, OF_LATE)
    if share is None or share <= CUT:
        return None
    return Finding(
        "truncated",
        "Many answers are cut",
        f"{percent(share)} of the answers of the last {min(OF_LATE, len(run.known(CUT_SHARE)))} updates were cut.",
        "The limit is shorter than what the model writes, so a cut answer loses what it had not finished.",
        "Raise max_completion_length.",
        ("max_completion_length",),
    )


def ends(run: Evidence) -> str:
    if not _known(run):
        share, known = run.mean(CUT_SHARE, OF_LATE), len(run.known(CUT_SHARE))
        few = share is None or known < OF_LATE
        return "" if few else f"{percent(share or 0.0)} of the answers of the last {OF_LATE} updates were cut"
    last = [each for each in run.recent(OF_LATE) if each.ends_known]
    answers, cut = sum(each.answers for each in last), sum(each.cut for each in last)
    if answers < FEWEST:
        return ""
    which = f"{answers - cut} of" if cut else "all of"
    return f"{which} the last {answers} answers ended before the max length"
