"""Checks of what surrounds training: template, end of answers, temperature."""

from __future__ import annotations

import math

from rlplay.health.digest import Digest, TokenPlace
from rlplay.health.finding import Evidence, Finding, NoTick
from rlplay.health.mismatch_checks import mismatch
from rlplay.health.run_kind import REWARDS
from rlplay.health.sampler_checks import drawn, other_policy
from rlplay.health.turn_checks import has_turns, whole_turns
from rlplay.trace.numbers import number
from rlplay.trace.text import visible

HALF = 0.5
HOT, UNDECIDED = 1.2, 3.0
"""A temperature above the usual 1, and an entropy in nats that is that of 20 equally likely tokens."""


def template(run: Evidence) -> Finding | None:
    """The prompt as the model reads it does not fit the model."""
    return _foreign_marks(run.now) or _drops_prompts(run.now) or _no_turn(run) or _opens_with_mark(run)


def _drops_prompts(now: Digest) -> Finding | None:
    different, alike = now.prompts_alike
    if now.walks or alike < 2 or alike < HALF * different:
        return None
    return Finding(
        "template",
        "Different prompts reach the model as the same tokens",
        f"{alike} of {different} different prompts of update {now.update} have the same tokens as another one.",
        "The model cannot see what it is asked: the chat template leaves the user's message out, reads another key of "
        "it, or the prompts are cut to what they have in common.",
        "Print the prompt as the tokenizer writes it (apply_chat_template, then decode), and look for the question.",
        place=TokenPlace(now.update, 0),
    )


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
    now, first = run.now, run.digests[0]
    different, alike = now.prompts_alike
    if alike:
        return NoTick(f"{alike} of {different} different prompts have the same tokens as another one")
    if not now.tokens or not now.template_marks:
        return NoTick("no mark of a chat template is in the prompts") if now.prompts_known else ""
    if run.kind in REWARDS and (other_policy(run) or mismatch(run)):
        return NoTick("the sampler disagrees with training, as it also does where it reads another prompt")
    if run.kind in REWARDS and has_turns(run) and isinstance(whole_turns(run), NoTick):
        return NoTick("whether later turns were sampled after these tokens is not compared")
    said, marks = first.answers - first.empty, sum(first.openings.values())
    apart = f"{different} different prompts have different tokens; " if different > 1 else ""
    return (
        f"{apart}all {now.template_marks} marks in them are single tokens; {said} of {first.answers} answers of update "
        f"{first.update} say something, {marks or 'none'} of them begin{'s' * (marks < 2)} with a mark"
    )


def _tokens(entropy: float) -> str:
    """How many equally likely tokens have this entropy, to two digits."""
    count = math.exp(entropy)
    return f"{round(count, -1):,.0f}" if count >= 100 else number(count, 2)


def hot(run: Evidence) -> Finding | None:
    """The sampling temperature makes answers random."""
    temperature, entropy = run.settings.temperature, run.mean("entropy", 3)
    if temperature <= HOT or entropy is None or entropy < UNDECIDED:
        return None
    return Finding(
        "temperature",
        "The temperature is too high",
        f"At temperature {number(temperature)} the entropy is {number(entropy)} nats: each token is as open as a draw "
        f"from {_tokens(entropy)} equally likely ones.",
        "Sampling flattens the model's probabilities so much that answers are mostly chance.",
        "Lower temperature towards 1.",
        ("temperature",),
        run.place("longest"),
    )


def cool(run: Evidence) -> str:
    if "temperature" not in run.on_record:
        return NoTick("the run does not state its temperature")
    temperature, entropy = run.settings.temperature, run.mean("entropy", 3)
    if entropy is None:
        return ""
    if run.source and not drawn(run):
        return NoTick(f"{number(temperature)} is on record, but nothing here shows that the sampler used it")
    return f"at {number(temperature)} each token is as open as a draw from {_tokens(entropy)} equally likely ones"
