"""Checks of which tokens the loss trains: the policy's own, with the end of each answer, and nobody else's."""

from __future__ import annotations

from collections import Counter

from rlplay.health.finding import NOT_USED, Evidence, Finding, NoTick
from rlplay.health.own_sampler import own
from rlplay.health.sampler_numbers import Surprise
from rlplay.health.trained_tokens import TrainedTokens
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

FEWEST, GIVEN = 32, 12
"""Answers before "none of them" means anything: of sampled ones, and of given ones, which all should end."""
ENDED, MOST = 0.02, 0.5
"""The share of given answers with their end in the loss that is as good as none, and the share that has a ✓."""
HALF = 0.5
EARLY = 0.1
"""Share of answers that stop well before the limit and without an end: an answer of one turn stops in no other way."""
UNLIKELY, SURE, SOME = 0.5, 6.0, 20
"""Nats by which the tokens of somebody else's turn are less likely than the policy's own, standard errors, and tokens.

A turn that the policy made up itself is as likely as its entropy says, and is no fault of the mask.
"""


def _known(run: Evidence) -> list[TrainedTokens]:
    return [each.trained for each in run.digests if each.trained is not None]


def of_others(run: Evidence) -> Finding | None:
    """Tokens that the policy did not write have a derivative."""
    known = _known(run)
    pulled, written = sum(each.pulled for each in known), sum(each.written for each in known)
    if pulled:
        return _others(
            f"{number(pulled)} of {number(written)} tokens that an environment or a tool wrote (mask 0) have a "
            "derivative of the loss that is not 0.",
            "The loss does not use the mask: the policy learns to write the environment's words.",
            next(each.places["pulled stranger"] for each in run.digests if each.trained and each.trained.pulled),
        )
    if own(run):  # a sampler with other weights writes what the policy would not, whoever's turn it is
        return None
    total = sum((each.unmasked for each in known), Surprise())
    if total.tokens < SOME or total.excess < max(UNLIKELY, SURE * total.error):
        return None
    return _others(
        f"{number(total.tokens)} tokens stand in a turn of a user or a tool and are trained like the policy's own "
        f"(mask 1). −log p of them averages {number(total.surprise / total.tokens)} nats, the policy's entropy there "
        f"{number(total.entropy / total.tokens)}: the policy did not sample them.",
        "The mask leaves out none of the tokens that came from outside, so the policy is credited for them.",
        next((each.places["stranger"] for each in reversed(run.digests) if "stranger" in each.places), None),
    )


def _others(evidence: str, cause: str, place: object) -> Finding:
    return Finding(
        "others' tokens",
        "Tokens that the policy did not write are trained on",
        evidence,
        cause,
        "Give every token of a prompt, a tool or an environment the mask 0, and multiply the loss by the mask.",
        place=place,  # type: ignore[arg-type]
    )


def only_own(run: Evidence) -> str:
    """How many tokens of others are on record without a derivative."""
    known = _known(run)
    written = sum(each.written for each in known)
    if not written:
        return NOT_USED if not any(each.unmasked.tokens for each in known) else NoTick(
            "no token has the mask 0, and answers hold turns of others"
        )  # fmt: skip
    return f"none of {number(written)} tokens that an environment wrote has a derivative"


def no_end_trained(run: Evidence) -> Finding | None:
    """The token that ends an answer is never in the loss."""
    known = _known(run)
    answers = sum(each.answers for each in run.digests)
    if answers < _fewest(run) or not known or not run.now.tokens or run.now.walks:
        return None
    return _of_given(run, known, answers) if run.kind in _GIVEN else _of_sampled(run, known, answers)


_GIVEN = ("imitation", "pairs", "kto")


def _fewest(run: Evidence) -> int:
    return GIVEN if run.kind in _GIVEN else FEWEST


def _of_given(run: Evidence, known: list[TrainedTokens], answers: int) -> Finding | None:
    last = sum((each.ends for each in known), Counter[int]())
    ended = max((last[end] for end in run.ends), default=0)
    if not run.ends or ended > ENDED * answers:
        return None
    return _never(
        run,
        f"Of {number(answers)} given answers in the loss, {number(ended) if ended else 'none'} "
        f"end{'s' * (ended < 2)} with {_named(run)}.",
        "The labels leave the end token out, so the model never learns to end an answer. Usually the pad token is the "
        "end token, and labels of padding are masked; or the template ends a turn with another token.",
    )


def _of_sampled(run: Evidence, known: list[TrainedTokens], answers: int) -> Finding | None:
    cut, early = sum(each.cut for each in run.digests), sum(each.early for each in known)
    # An answer that is nothing but its end is left out of the loss as a whole then, and recorded as it was sampled.
    empty, last = sum(each.empty for each in run.digests), sum((each.ends for each in known), Counter[int]())
    ended = sum(last[end] for end in run.ends) if run.ends else answers - cut
    whole = all(not each.written for each in known)
    marks = sum((each.marks_within for each in run.digests), Counter[str]())
    if marks and marks.most_common(1)[0][1] >= HALF * answers:  # they end with a mark that the run does not know
        return None
    if not run.now.ends_known or ended > empty or early < EARLY * answers or not whole:
        return None
    return _never(
        run,
        f"Not one of {number(answers)} answers has its end token in the loss, though {number(early)} are shorter than "
        f"three quarters of the longest, {run.now.limit} tokens: they ended before the limit.",
        "The mask of the answers leaves their end token out, as it does where the pad token is the end token; or a "
        "stop string ended them. So nothing rewards an end, and answers grow to the limit.",
    )


def _named(run: Evidence) -> str:
    return " or ".join(f"{visible(text)} (id {token})" for token, text in sorted(run.ends.items())[:3])


def _never(run: Evidence, evidence: str, cause: str) -> Finding:
    return Finding(
        "end untrained",
        "The end of answers is not trained",
        evidence,
        cause,
        "Give the tokenizer a pad token of its own, and keep the label and the mask of the first end token.",
        place=run.place("longest"),
    )


def ends_trained(run: Evidence) -> str:
    """In how many answers the end token is in the loss."""
    known = _known(run)
    answers = sum(each.answers for each in run.digests)
    if answers < _fewest(run) or not run.now.tokens:
        return NoTick(f"needs {_fewest(run)} answers") if run.now.tokens else ""
    if not run.ends:
        return NoTick("not recorded: which tokens end an answer")
    last = sum((each.ends for each in known), Counter[int]())
    count = min(sum(last[end] for end in run.ends), answers)
    said = f"{percent(count / answers)} of {number(answers)} answers have their end in the loss"
    if run.kind in _GIVEN and count < MOST * answers:  # those of a sampler may all be cut at first
        return NoTick(said)
    return said if count else ""
