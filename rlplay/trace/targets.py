"""Targets of "who taught it that?", from what is on record: a token, a candidate that lost, an answer, any text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlplay.trace.records import Sampled
from rlplay.trace.teachers import Target
from rlplay.trace.text import quote
from rlplay.trace.update import Update


def target_at(update: Update, answer: int, token: int | None, candidate: int | str | None) -> Target:
    """A token of an answer, another `candidate` in its place, or the whole answer; all count from 0.

    Raises ValueError, one line, if there is no such token or candidate.
    """
    if token is None:
        if candidate is not None:
            raise ValueError("a candidate is one in the place of a token; say which token")
        return answer_target(update, answer)
    plain = token_target(update, answer, token)
    if candidate is None:
        return plain
    chosen = candidate_id(update, answer, token, candidate) if isinstance(candidate, str) else candidate
    return token_target(update, answer, token, chosen)


def token_target(update: Update, completion: int, token: int, candidate: int | None = None) -> Target:
    """A token of the update's batch, counted from 0 in its answer; with `candidate`, this id in that token's place.

    Raises ValueError, one line, if there is no such token, if the policy did not sample it, or if its id or one before
    it is not on record.
    """
    sampled, own = _answer(update, completion)
    place = own.start + token
    if not own.start <= place < own.stop:
        count = own.stop - own.start
        raise ValueError(f"answer {completion} of update {update.number} has {count} tokens; there is no token {token}")
    if not sampled.mask[place]:
        raise ValueError("an environment wrote this token; choose one that the policy sampled")
    chosen = int(sampled.token_ids[place]) if candidate is None else candidate
    return text_target(_prompt(sampled, completion), sampled.token_ids[own.start : place].tolist(), chosen)


def candidate_id(update: Update, completion: int, token: int, text: str) -> int:
    """The id of the candidate with this text, blanks around it aside, in the place of a token, as in `token_target`.

    Raises ValueError, one line, if no candidate that is on record there has it, or if several do.
    """
    sampled, own = _answer(update, completion)
    ids: list[int] = sampled.top_ids[own.start + token].tolist()
    texts = {each: sampled.pieces.get(each, "") for each in ids}
    exact = [each for each in texts if texts[each] == text]
    found = exact or [each for each in texts if texts[each].strip() == text.strip()]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"several candidates there are {quote(text)}; choose one by its id: {found}")
    known = ", ".join(map(quote, texts.values()))
    raise ValueError(f"no candidate there is {quote(text)}; on record are {known or 'none'}")


def answer_target(update: Update, completion: int) -> Target:
    """All tokens of an answer of the update's batch that the policy sampled. Raises ValueError as `token_target`."""
    sampled, own = _answer(update, completion)
    places = np.flatnonzero(sampled.mask[own]).tolist()
    if not places:
        raise ValueError(f"the policy sampled no token of answer {completion}")
    return _known(Target(_prompt(sampled, completion), sampled.token_ids[own].tolist(), places))


def text_target(prompt_ids: Sequence[int], begun: Sequence[int], token_id: int) -> Target:
    """The token `token_id` after the beginning of an answer. Raises ValueError, one line, if an id is unknown."""
    return _known(Target([*prompt_ids], [*begun, token_id], [len(begun)]))


def whole_text_target(prompt_ids: Sequence[int], answer_ids: Sequence[int]) -> Target:
    """Every token of an answer, such as a held-out one. Raises ValueError, one line, if it is empty or ids unknown."""
    if not answer_ids:
        raise ValueError("the answer has no tokens")
    return _known(Target([*prompt_ids], [*answer_ids], list(range(len(answer_ids)))))


def check_target(target: Target, readable: int, writable: int, context: int) -> None:
    """Raises ValueError, one line, if a model has no probability for what the target names.

    It reads ids below `readable`, has probabilities of those below `writable`, and reads `context` tokens at most.
    """
    prompt, answer, places = target.prompt_ids, target.answer_ids, target.places
    if not prompt:
        raise ValueError("the prompt has no tokens; a target needs one")
    if not places or places != sorted({*places}) or not 0 <= places[0] <= places[-1] < len(answer):
        raise ValueError(f"the places of a target are tokens of its answer of {len(answer)}, ascending, at least one")
    if any(not 0 <= token < readable for token in prompt + answer[: places[-1]]):
        raise ValueError(f"a token id is outside the {readable} that the model can read")
    if any(not 0 <= answer[place] < writable for place in places):
        raise ValueError(f"a token id is outside the model's vocabulary of {writable}")
    if len(prompt) + places[-1] > context:
        raise ValueError(f"{len(prompt) + places[-1]} tokens are more than the {context} that the model can read")


def _answer(update: Update, completion: int) -> tuple[Sampled, slice]:
    sampled = update.sampled
    if sampled is None:
        raise ValueError(f"update {update.number} has no answers on record")
    count = len(sampled.group)
    if not 0 <= completion < count:
        raise ValueError(f"update {update.number} has {count} answers, counted from 0; there is no answer {completion}")
    return sampled, slice(int(sampled.offsets[completion]), int(sampled.offsets[completion + 1]))


def _prompt(sampled: Sampled, completion: int) -> list[int]:
    group = int(sampled.group[completion])
    ids: list[int] = sampled.prompt_ids[sampled.prompt_offsets[group] : sampled.prompt_offsets[group + 1]].tolist()
    return ids


def _known(target: Target) -> Target:
    if not target.prompt_ids or min(target.prompt_ids + target.answer_ids) < 0:
        raise ValueError("the recording has the words of prompt and answer, but not the ids of their tokens")
    return target
