"""Candidates of a repair as rows: what is changed, the finding's number over the updates, and what became of it."""

from __future__ import annotations

import math

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from rlplay.algorithms.setting_values import shown
from rlplay.algorithms.settings import Settings
from rlplay.health.remedies.outcome import Verdict
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.numbers import number
from rlplay.trace.text import visible
from rlplay.ui.format.bars import tall_bars
from rlplay.ui.session.rehearsing import Candidate, Rehearsing

ROOMY = 96
"""Cells of a row from which on each update has two of them."""
MARKS: dict[Verdict, tuple[str, str]] = {
    "unchanged": ("", "$text-muted"), "gone": ("✓ gone", "$success"), "better": ("▲ better", "$success"),
    "same": ("= same", "$text-muted"), "worse": ("▼ worse", "$error"), "untold": ("? cannot tell", "$text-muted"),
    "refused": ("cannot be tried", "$warning"),
}  # fmt: skip
BESIDE = ({"reward": "reward", "loss": "loss"}, {"kl": "KL", "kl_old": "KL of the update"})
"""Metrics beside the finding's own number; of either the first that a run has."""
_TITLES = BESIDE[0] | BESIDE[1]
_QUIET = "$text-muted"


def scale(tried: Rehearsing) -> tuple[float, float] | None:
    """The lowest and the highest number of the bars: of the run before, and of every candidate; None without any.

    Bars of shares begin at 0.
    """
    points = [*tried.points, *(point for each in tried.candidates if each.judged for point in each.judged.points)]
    known = [value for _, value in points if math.isfinite(value)]
    return (0.0 if tried.measure.share else min(known), max(known)) if known else None


def changed(changes: SomeSettings, before: Settings) -> str:
    """The settings of a candidate, "learning_rate 0.0004 → 0.0001"."""
    return visible(", ".join(f"{name} {shown(getattr(before, name))} → {shown(to)}" for name, to in changes.items()))


def called(candidate: Candidate) -> str:
    """A candidate in words."""
    return candidate.remedy.label if candidate.remedy.changes else "the run, unchanged"


def row(tried: Rehearsing, candidate: Candidate, ends: tuple[float, float], width: int, here: bool) -> Content:
    """Three lines: the change and what became of it; the bars, two lines high, with the numbers beside them.

    The bars reach from the first of `ends` to the second.
    """
    word, ink = _became(tried, candidate)
    lines = [
        Content.assemble("▸ " if here else "  ", _title(tried, candidate, width - 3 - cell_len(word)), " ", (word, ink))
    ]
    said = _number(tried, candidate), _others(tried, candidate)
    for bars, text in zip(_bars(tried, candidate, ends, 2 if width >= ROOMY else 1), said, strict=True):
        lines.append(Content.assemble("  ", bars, "  ", text))
    return Content("\n").join(lines)


def _title(tried: Rehearsing, candidate: Candidate, room: int) -> Content:
    """What is tried in words, beside it the settings if there is room."""
    label, settings = called(candidate), changed(candidate.remedy.changes, tried.before.settings)
    if candidate.own:
        label, settings = settings, "your own"
    label = cut(label, room)
    beside = f"  {settings}" if settings and cell_len(label) + 2 + cell_len(settings) <= room else ""
    return Content.assemble((label, "bold"), (beside, _QUIET), " " * (room - cell_len(label + beside)))


def _became(tried: Rehearsing, candidate: Candidate) -> tuple[str, str]:
    """What became of the finding with a candidate, or how far that is, with its ink."""
    match candidate.state:
        case "refused":
            return MARKS["refused"]
        case "waiting" | "stopped":
            return candidate.state, _QUIET
        case "under way":
            return f"update {candidate.tried + 1} of {tried.trial.updates}", _QUIET
    outcome = None if candidate.judged is None else candidate.judged.outcome
    if outcome is None:
        return "reading", _QUIET
    word, ink = MARKS[outcome.verdict]
    return (f"{word}, brings {', '.join(outcome.brings)}", "$warning") if outcome.brings else (word, ink)


def _bars(tried: Rehearsing, candidate: Candidate, ends: tuple[float, float], cells: int) -> list[Content]:
    """The run's own numbers, quiet, then those that were tried."""
    known = {} if candidate.judged is None else dict(candidate.judged.points)
    outcome = None if candidate.judged is None else candidate.judged.outcome
    ink = "$foreground" if outcome is None or outcome.verdict == "unchanged" else MARKS[outcome.verdict][1]
    first = tried.trial.since + 1
    after = [known.get(update, math.nan) for update in range(first, first + tried.trial.updates)]
    old, new = (tall_bars([x for x in values for _ in range(cells)], *ends)
                for values in ([x for _, x in tried.points], after))  # fmt: skip
    border = "│" if tried.points else ""
    return [Content.assemble((before + border, _QUIET), (now, ink)) for before, now in zip(old, new, strict=True)]


def _number(tried: Rehearsing, candidate: Candidate) -> Content:
    """The finding's own number, beside that of the unchanged run, or why there is none."""
    if candidate.state == "refused":
        return Content.styled(visible(candidate.refused), "$warning")
    value = None if candidate.judged is None else candidate.judged.number
    if value is None:
        return Content()
    unchanged = tried.candidates[0]
    beside = None if unchanged.judged is None or candidate is unchanged else unchanged.judged.number
    instead = "" if beside is None else f" instead of {tried.measure.shown(beside)}"
    return Content.assemble(tried.measure.shown(value), (instead, _QUIET))


def _others(tried: Rehearsing, candidate: Candidate) -> Content:
    """Reward and KL before the first and after the last update that was tried."""
    metrics = {} if candidate.ended is None or candidate.ended.finished is None else candidate.ended.finished.metrics
    names = [name for titles in BESIDE if (name := next((each for each in titles if each in metrics), ""))]
    parts = [_change(_TITLES[name], tried.beside.get(name), metrics[name]) for name in names]
    outcome = None if candidate.judged is None else candidate.judged.outcome
    if outcome is not None and not outcome.paid_alike:
        parts.append(Content.styled("another reward is paid", _QUIET))
    return Content(" · ").join(parts)


def _change(title: str, was: float | None, now: float) -> Content:
    before = "" if was is None or not math.isfinite(was) else f"{number(was)} → "
    return Content.assemble((f"{title} ", _QUIET), f"{before}{number(now) if math.isfinite(now) else 'not a number'}")


def cut(text: str, cells: int) -> str:
    """The text in so many cells at most, with an … where it ends early."""
    return text if cell_len(text) <= cells else f"{set_cell_size(text, max(cells - 1, 0))}…"
