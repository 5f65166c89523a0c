"""What a walk of the user has earned, beside what the policy's walks earn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from rlplay.ui.plot.view import VALUE
from rlplay.ui.world.reading import Reading
from rlplay.ui.world.short_numbers import short
from rlplay.worlds.world import GOAL, discounted

if TYPE_CHECKING:
    from rlplay.worlds.walking import Walk

_MUTED, _KEY = "$text-muted", "bold $foreground"
_SLIPPED = "≈"


def walk_lines(walk: Walk, found: Reading, width: int) -> list[Content]:
    """Where the walk is and what each move earned, the return, and the keys: three lines of at most `width` cells."""
    rewards = walk.rewards
    lines = [_steps(walk, width), _return(rewards, found, width), _keys(walk)]
    return [line.truncate(width, ellipsis=True) for line in lines]


def walk_summary(walk: Walk, found: Reading) -> Content:
    """The return of the walk, the mean of the policy's walks, and what can be expected."""
    parts = [("you ", discounted(walk.rewards, found.gamma))]
    if found.mean_return is not None:
        parts.append(("policy's walks ", found.mean_return))
    parts += _expected(walk, found)
    return Content(" · ").join(Content.assemble(label, (short(value, signed=True), VALUE)) for label, value in parts)


def _expected(walk: Walk, found: Reading) -> list[tuple[str, float]]:
    """What the start is worth: under the policy exactly, and at best."""
    known = [("exact ", found.exact.get(walk.start))]
    known.append(("best ", None if found.best is None else found.best.values[walk.start]))
    return [(label, value) for label, value in known if value is not None]


def _steps(walk: Walk, width: int) -> Content:
    moves = f"{len(walk.moves)} move{'s' * (len(walk.moves) != 1)}"
    head = Content.assemble(("You", "bold"), (f" {walk.square} · {moves} of {walk.world.steps}   ", _MUTED))
    each = [
        f"{move}{_SLIPPED * slid} {short(reward, signed=True)}"
        for move, reward, slid in zip(walk.moves, walk.rewards, walk.slipped, strict=True)
    ]
    last = ""
    if walk.moves and walk.slipped[-1]:
        last = f"   {_SLIPPED} slipped: {walk.moves[-1]} led to {walk.square}"
    shown = len(each)
    while shown > 1 and head.cell_length + len("  ".join(each[-shown:])) + 2 + len(last) > width:
        shown -= 1
    left_out = "… " * (shown < len(each))
    return Content.assemble(head, left_out, "  ".join(each[len(each) - shown :]), (last, "bold"))


def _return(rewards: list[float], found: Reading, width: int) -> Content:
    """The return and what it is made of, beside the mean of the policy's walks; in a narrow line, without the rest."""
    parts: list[str | tuple[str, str]] = [
        ("return ", _MUTED), (short(discounted(rewards, found.gamma), signed=True), VALUE),
        (f" = Σ γᵏ·r, γ = {short(found.gamma)}; plain sum {short(sum(rewards), signed=True)}", _MUTED),
    ]  # fmt: skip
    if found.mean_return is None:
        return Content.assemble(*parts)
    walks, mean = len(found.chart.paths), (short(found.mean_return, signed=True), VALUE)
    policy = [("   policy ", _MUTED), mean, (f" mean of the {walks} walks of update {found.update}", _MUTED)]
    forms = [*parts, *policy], [*parts[:2], *policy], [*parts[:2], *policy[:2]]
    made = [Content.assemble(*form) for form in forms]
    return next((each for each in made if each.cell_length <= width), made[-1])


def _keys(walk: Walk) -> Content:
    moves, esc = ("".join(f"{move} " for move in walk.world.moves), _KEY), ("esc", _KEY)
    if not walk.over:
        return Content.assemble(moves, ("walk   ", _MUTED), esc, (" end", _MUTED))
    kind = walk.world.kind(walk.square)
    end = "★ reached" if kind == GOAL else "○ fallen" if walk.world.ends(walk.square) else "no move is left"
    return Content.assemble((f"{end}.   ", "bold"), ("enter", _KEY), (" walk again   ", _MUTED), esc, (" end", _MUTED))
