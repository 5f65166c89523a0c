"""The word for what a policy samples: a language model's tokens are moves in a world."""

from __future__ import annotations

import re

from rlplay.trace.records import Sampled

_TOKEN = re.compile(r"(?<![=/_])(?<!special )\b(?!(?<![a-z] )token:)([Tt])oken(s?)\b(?!_)")


def worded(text: str, step_word: str) -> str:
    """A text of rlplay's own, written about tokens, with the `step_word` of the run ("token" or "move") instead.

    Values of settings stay, as in level=token and "token: each token", and so do special tokens. Never for text of a
    model, which may hold the word itself.
    """
    if step_word == "token":
        return text
    return _TOKEN.sub(lambda found: (step_word.capitalize() if found[1] == "T" else step_word) + found[2], text)


def numbered(sampled: Sampled, token: int, step_word: str) -> str:
    """Which token of its answer `token` is, in `sampled` with that answer alone; squares are not counted as moves."""
    if step_word == "token":
        return f"token {token + 1} of {len(sampled.token_ids)}"
    own = sampled.mask == 1
    return f"{step_word} {int(own[: token + 1].sum())} of {int(own.sum())}" if own[token] else "square"
