"""Which stages fit a run: the subjects to which the main screen can give its room."""

from __future__ import annotations

from rlplay.trace.turns import have_turns
from rlplay.ui.session.session import Session
from rlplay.verbs import MAP_VIEWS, STAGES

SHOWS: dict[str, tuple[str, ...]] = {
    "token": ("tokens", "token"),
    "answers": ("answers", "tokens", "curves"),
    "map": ("token", "curves"),
    "curve": ("answers", "tokens", "curves"),
    "pair": ("tokens", "curves"),
    "conversation": ("tokens", "curves"),
    "tree": ("curves",),
    "river": ("tokens", "curves"),
    "position": ("tokens", "curves"),
    "all": ("answers", "tokens", "token", "curves"),
}
"""The panels of a stage, as the verb `panel` calls them."""
SMALL = SHOWS | {
    "map": ("curves",),
    "curve": ("curves",),
    "answers": ("answers", "tokens"),
    "pair": ("tokens",),
    "conversation": ("tokens",),
    "all": ("answers", "tokens"),
}
"""Those on a narrow screen; the curves there are a strip, unless they are the stage."""
WIDE = SHOWS | {"answers": ("answers", "tokens", "token", "curves")}
"""Those on a wide screen."""
APART = {"answers": "all", "tokens": "all", "token": "token", "curves": "curve"}
"""The stage that shows a panel which the present one leaves out."""
VIEWS = {**dict.fromkeys(MAP_VIEWS, "map"), "tree": "tree", "belief": "river", "position": "position"}
"""The views that have a stage of their own."""


def fitting(session: Session) -> list[str]:
    """The stages of a run: its own subject, all panels, then the others in order. Curves alone have no other."""
    if session.source.curves_only:
        return ["curve"]
    return list(dict.fromkeys([session.source.stage, "all", *(name for name in STAGES if _fits(name, session))]))


def _fits(stage: str, session: Session) -> bool:
    world, shown = session.world, session.shown
    match stage:
        case "map":
            return world is not None
        case "pair":
            return session.settings_of(shown).kind in ("pairs", "reward model")
        case "conversation":
            return world is None and shown is not None and shown.sampled is not None and have_turns(shown.sampled)
        case "tree":
            return session.settings_of(shown).rewarded
        case _:
            return True
