"""Where one step of an answer ends and the next begins, seen from its text alone."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

_CUT = re.compile(r"""\n|[.!?…]["'”’»)\]]*(?=\s)|[。！？]["'”’」』]*""")


def step_ends(texts: Sequence[str]) -> list[int]:
    """The last token of each reasoning step of an answer, by index, rising; the last one is the answer's last token.

    A step ends with a line, or with a sentence: after . ! or ? where white space follows, so that "3.5" stays whole.
    `texts` has one string per token, "" for a token without text of its own such as the one that ends the answer.
    Every step has a text: what is blank belongs to the step before it, or to the first.
    """
    whole, lengths = "".join(texts), list(accumulate(map(len, texts)))
    ends: list[int] = []
    for cut in (*(found.end() for found in _CUT.finditer(whole)), len(whole)):
        token = bisect_left(lengths, cut) if cut < len(whole) else len(texts) - 1
        begin = lengths[ends[-1]] if ends else 0
        if whole[begin : lengths[token]].strip():
            ends.append(token)
        elif ends:
            ends[-1] = token
    return ends or [len(texts) - 1]
