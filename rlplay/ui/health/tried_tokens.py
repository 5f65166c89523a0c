"""The tokens that showed a problem, and what the same prompt got once something else was tried."""

from __future__ import annotations

from typing import NamedTuple

from rich.cells import cell_len
from textual.content import Content

from rlplay.trace.numbers import number, percent
from rlplay.trace.records import Sampled
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.format.shown_text import quoted, token_text
from rlplay.ui.health.tried_rows import cut
from rlplay.ui.session.rehearsing import Candidate, Rehearsing

_QUIET, _HERE = "$text-muted", "bold reverse"
_LABEL = 23


class Spot(NamedTuple):
    """An answer of an update whose answers are sampled, and one of its tokens; −1 for none."""

    update: Update
    sampled: Sampled
    answer: int
    token: int = -1


def shown_tokens(
    tried: Rehearsing, candidate: Candidate, shown: Update | None, width: int, word: str = "token"
) -> Content:
    """A line for the answer that showed the problem, and one each for the unchanged run and for the candidate.

    `shown` is the update with the finding's place; None if there is none. `word` names what the policy samples.
    """
    place, unchanged = tried.trial.finding.place, tried.candidates[0]
    was = None if place is None or shown is None else _spot(shown, place.answer, place.token)
    same = _of(unchanged)
    now = None if candidate is unchanged else _same_answer(candidate, same) or _of(candidate)
    spots = [(label, spot) for label, spot in (("in the run", was), ("unchanged", same), ("changed", now)) if spot]
    if not spots:
        return Content()
    lines = [Content(), Content.styled(f"The {word}s that showed it", "bold")]
    for place_of, (label, spot) in enumerate(spots):
        before = spots[place_of - 1][1] if place_of else None
        if before is None or _prompt(before) != _prompt(spot):
            lines.append(Content.styled(cut(f"prompt: {_prompt(spot)}", width), _QUIET))
        head = f"update {spot.update.number}, {label}"
        lines.append(Content.assemble((f"{head:<{_LABEL}} ", _QUIET), _excerpt(spot, width - _LABEL - 1)))
    if now is not None and (moved := _moved(unchanged, candidate)):
        lines.append(Content.styled(cut(moved, width), _QUIET))
    return Content("\n").join(lines)


def _moved(unchanged: Candidate, candidate: Candidate) -> str:
    """What the first update made of one token that both have sampled, "" if there is none."""
    one, other = (each.judged.outcome.token if each.judged and each.judged.outcome else None
                  for each in (unchanged, candidate))  # fmt: skip
    if one is None or other is None or not other.same or one.after is None or other.after is None:
        return ""
    ends = f"{percent(one.after)} unchanged, {percent(other.after)} changed"
    return f"Update {other.place.update} took {quoted(other.text)} from {percent(other.before)} to {ends}."


def _spot(update: Update, answer: int, token: int) -> Spot | None:
    sampled = update.sampled
    there = sampled is not None and sampled.done and 0 <= answer < len(sampled.group)
    return Spot(update, sampled, answer, token) if sampled is not None and there else None


def _of(candidate: Candidate) -> Spot | None:
    """Where its last update shows the problem best."""
    place = None if candidate.judged is None else candidate.judged.place
    if place is None or candidate.ended is None or candidate.ended.number != place.update:
        return None
    return _spot(candidate.ended, place.answer, place.token)


def _same_answer(candidate: Candidate, other: Spot | None) -> Spot | None:
    """The candidate's answer to the same prompt, drawn with the same random numbers; None if it has none."""
    if other is None or candidate.ended is None or candidate.ended.number != other.update.number:
        return None
    found = _spot(candidate.ended, other.answer, -1)
    return found if found is not None and _prompt(found) == _prompt(other) else None


def _prompt(spot: Spot) -> str:
    return visible(spot.sampled.prompts[int(spot.sampled.group[spot.answer])])


def _excerpt(spot: Spot, cells: int) -> Content:
    """The part of the answer around the token in one line, and what the answer earned."""
    scored, earned = spot.update.scored, ""
    if scored is not None:
        reward = f"reward {number(float(scored.rewards[spot.answer]))}"
        earned = f"  {scored.roles[spot.answer] if scored.roles else reward}"
    return Content.assemble(_words(spot, cells - cell_len(earned)), (earned, _QUIET))


def _words(spot: Spot, cells: int) -> Content:
    sampled = spot.sampled
    tokens = range(int(sampled.offsets[spot.answer]), int(sampled.offsets[spot.answer + 1]))
    pieces = [token_text(sampled.texts[at], sampled.pieces.get(int(sampled.token_ids[at]), "")) for at in tokens]
    if not pieces:
        return Content.styled("(empty)", _QUIET)
    first = min(max(spot.token, 0), len(pieces) - 1)
    last, room = first, cells - 2  # for an … at either end
    pieces[first] = cut(pieces[first], room)
    room -= cell_len(pieces[first])
    while True:
        before = cell_len(pieces[first - 1]) if first else room + 1
        behind = cell_len(pieces[last + 1]) if last + 1 < len(pieces) else room + 1
        if before > room and behind > room:
            break
        to_left = before <= room and (behind > room or spot.token - first <= last - spot.token)
        first, last, room = (first - 1, last, room - before) if to_left else (first, last + 1, room - behind)
    parts = [(pieces[at], _HERE if at == spot.token else "") for at in range(first, last + 1)]
    return Content.assemble(("…" * (first > 0), _QUIET), *parts, ("…" * (last + 1 < len(pieces)), _QUIET))
