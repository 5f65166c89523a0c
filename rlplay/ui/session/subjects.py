"""Subjects of the question who taught something: a token of a batch, a candidate in its place, or any text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlplay.trace.records import Sampled
from rlplay.trace.targets import text_target, token_target, whole_text_target
from rlplay.trace.teachers import Target
from rlplay.trace.update import Update
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.format.step_word import worded


@dataclass(frozen=True)
class Subject:
    """A target in words: its `name` as the model wrote it, in quotes, and `where` that is in an answer to `prompt`.

    `completion` is the answer of update `of` that it is from; None if it is from none. `candidates` are the tokens that
    could have come in its place, with their texts.
    """

    target: Target
    name: str
    where: str
    of: int = 0
    completion: int | None = None
    candidates: tuple[tuple[int, str], ...] = ()
    prompt: str = ""

    def instead(self, step: int) -> Subject:
        """The candidate `step` further on the list, in its place; the same if there is none."""
        ids, here = [token for token, _ in self.candidates], self.target.answer_ids[-1]
        at = (ids.index(here) + step if here in ids else 0) if ids else -1
        if not 0 <= at < len(ids):
            return self
        target = Target(self.target.prompt_ids, [*self.target.answer_ids[:-1], ids[at]], self.target.places)
        return replace(self, target=target, name=quoted(self.candidates[at][1]))


def token_subject(update: Update, completion: int, token: int, candidate: int | None = None) -> Subject:
    """A token of an answer of the batch, or the id `candidate` in its place. Raises ValueError as `token_target`."""
    target = token_target(update, completion, token, candidate)
    sampled = update.sampled
    assert sampled is not None
    place, chosen = int(sampled.offsets[completion]) + token, target.answer_ids[-1]
    listed = [int(each) for each in sampled.top_ids[place]]
    written = int(sampled.token_ids[place])
    ids = list(dict.fromkeys([*listed, written, chosen]))
    pieces = _pieces(update, sampled)
    return Subject(
        target, quoted(pieces.get(chosen, "")), worded(place_words(token), update.step_word), update.number,
        completion if chosen == written else None, tuple((each, pieces.get(each, "")) for each in ids),
        " ".join(sampled.prompts[int(sampled.group[completion])].split()),
    )  # fmt: skip


def text_subject(
    prompt: str, prompt_ids: Sequence[int], begun: Sequence[int], chosen: int, candidates: Sequence[int],
    pieces: Mapping[int, str],
) -> Subject:  # fmt: skip
    """The token `chosen` after the beginning of an answer. Raises ValueError, one line, if an id is unknown."""
    target = text_target(prompt_ids, begun, chosen)
    ids = list(dict.fromkeys([*candidates, chosen]))
    listed = tuple((each, pieces.get(each, "")) for each in ids)
    name, where = quoted(pieces.get(chosen, "")), place_words(len(begun))
    return Subject(target, name, where, candidates=listed, prompt=" ".join(prompt.split()))


def answer_subject(prompt: str, prompt_ids: Sequence[int], answer_ids: Sequence[int]) -> Subject:
    """A whole answer, such as a held-out one. Raises ValueError, one line, if it has no tokens."""
    return Subject(
        whole_text_target(prompt_ids, answer_ids), "this answer", "all its tokens", prompt=" ".join(prompt.split())
    )


def place_words(token: int) -> str:
    """Where a token is, in words."""
    return f"{'first token' if not token else f'token {token + 1}'} of an answer"


def _pieces(update: Update, sampled: Sampled) -> dict[int, str]:
    return {**(update.finished.pieces if update.finished is not None else {}), **sampled.pieces}
