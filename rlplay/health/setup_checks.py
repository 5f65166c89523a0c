"""Checks of what surrounds training: finite numbers, template, end of answers, temperature."""

from __future__ import annotations

import math
from collections import Counter

from rlplay.health.digest import Digest, TokenPlace
from rlplay.health.finding import Evidence, Finding
from rlplay.trace.numbers import number
from rlplay.trace.text import visible

HALF = 0.5
FEWEST = 32
"""Answers before "none of them" means anything: a share of 10 % would leave no trace in 32 with probability 3 %."""
HOT, UNDECIDED = 1.2, 3.0
"""A temperature above the usual 1, and an entropy in nats that is that of 20 equally likely tokens."""
CUT = 0.3


def not_finite(run: Evidence) -> Finding | None:
    """A metric is NaN or infinite."""
    broken = _broken(run)
    if not broken:
        return None
    return Finding(
        "not finite",
        f"{visible(broken[0])} is not a number",
        f"Update {run.last}: {', '.join(map(visible, broken[:3]))} is NaN or infinite.",
        "The weights or a reward are not finite any more; usually an earlier step was too long.",
        "Go back to an earlier update and lower learning_rate.",
        ("learning_rate",),
    )


def _broken(run: Evidence) -> tuple[str, ...]:
    """The metrics of the newest update that are not finite."""
    if run.newest is not None:
        return run.newest.broken
    return tuple(sorted(name for name, value in run.history.at(run.last).items() if not math.isfinite(value)))


def finite(run: Evidence) -> str:
    return "no NaN or inf" if run.finished else ""


def template(run: Evidence) -> Finding | None:
    """The prompt as the model reads it does not fit the model."""
    return _foreign_marks(run.now) or _no_turn(run) or _opens_with_mark(run)


def _foreign_marks(now: Digest) -> Finding | None:
    if not now.broken_marks:
        return None
    mark, pieces = max(now.broken_marks.items(), key=lambda item: item[1])
    return Finding(
        "template",
        "The chat template does not fit the tokenizer",
        f"The tokenizer cuts the template's mark {visible(mark)} into {pieces} pieces, and no prompt contains a mark "
        "that is one token.",
        "The chat template belongs to another model: this model has not seen these marks as marks.",
        "Use the chat template that came with the model (chat_template.jinja in its folder), or its own tokenizer.",
        place=TokenPlace(now.update, 0),
    )


def _no_turn(run: Evidence) -> Finding | None:
    first = run.digests[0]
    # A walk of one move is whole, and where only words are on record, a word is no mark.
    if first.walks or not first.tokens or first.empty < HALF * first.answers:
        return None
    return Finding(
        "template",
        "The model ends its answers at once",
        f"{first.empty} of {first.answers} answers of update {first.update} hold only the token that ends them.",
        "The prompt ends where the model would not begin to write. Usually the chat template ignores "
        "add_generation_prompt, so it does not open the model's turn.",
        "Let the chat template write the mark of the model's turn after the last message if add_generation_prompt is "
        "set.",
        place=TokenPlace(first.update, 0),
    )


def _opens_with_mark(run: Evidence) -> Finding | None:
    first = run.digests[0]
    mark, count = first.openings.most_common(1)[0] if first.openings else ("", 0)
    if count < HALF * first.answers:
        return None
    return Finding(
        "template",
        "Answers begin with a mark of the template",
        f"{count} of {first.answers} answers of update {first.update} begin with {visible(mark)}.",
        "The prompt does not contain this mark, so the model writes it itself.",
        f"Let the chat template end the prompt with {visible(mark)}.",
        place=TokenPlace(first.update, 0),
    )


def fits(run: Evidence) -> str:
    return "the tokenizer knows the template's marks" if run.now.tokens and not run.now.broken_marks else ""


def no_end(run: Evidence) -> Finding | None:
    """Not one answer has ended."""
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
    now = run.now
    if now.cut <= CUT * now.answers:
        return None
    return Finding(
        "truncated",
        "Many answers are cut",
        f"{now.cut} of {now.answers} answers were cut{_limit(now)}.{_earned(run)[1]}",
        "The limit is shorter than what the model writes, so a cut answer loses what it had not finished.",
        "Raise max_completion_length.",
        ("max_completion_length",),
        now.places.get("cut"),
    )


def ends(run: Evidence) -> str:
    now, known = run.now, run.now.tokens and run.now.ends_known
    return f"{now.answers - now.cut} of {now.answers} answers ended before the max length" if known else ""


def hot(run: Evidence) -> Finding | None:
    """The sampling temperature makes answers random."""
    temperature, entropy = run.settings.temperature, run.mean("entropy", 3)
    if temperature <= HOT or entropy is None or entropy < UNDECIDED:
        return None
    return Finding(
        "temperature",
        "The temperature is too high",
        f"At temperature {number(temperature)} the entropy is {number(entropy)} nats: each token is as open as a draw "
        f"from {number(2.718281828**entropy, 2)} equally likely ones.",
        "Sampling flattens the model's probabilities so much that answers are mostly chance.",
        "Lower temperature towards 1.",
        ("temperature",),
        run.place("longest"),
    )


def cool(run: Evidence) -> str:
    entropy = run.mean("entropy", 1)
    at = f" at {number(run.settings.temperature)}" if "temperature" in run.on_record else ""
    return "" if entropy is None else f"entropy {number(entropy)} nats{at}"
