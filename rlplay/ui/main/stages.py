"""Which stages fit a run: the subjects to which the main screen can give its room."""

from __future__ import annotations

from rlplay.trace.turns import are_conversations
from rlplay.ui.session.session import Session
from rlplay.verbs import STAGES

SHOWS: dict[str, tuple[str, ...]] = {
    "token": ("tokens", "token"),
    "answers": ("answers", "tokens", "curves"),
    "curve": ("answers", "tokens", "curves"),
    "pair": ("answers", "tokens", "curves"),
    "conversation": ("answers", "tokens", "curves"),
    "map": ("answers", "tokens", "curves"),
    "tree": ("answers", "tokens", "curves"),
    "river": ("answers", "tokens", "curves"),
    "all": ("answers", "tokens", "token", "curves"),
}
"""The panels of a stage, as the verb `panel` calls them."""
VIEWS = {"map": "map", "tree": "tree", "river": "belief"}
"""The stages that are about one view of the curve panels, with its name."""


def fitting(session: Session) -> list[str]:
    """The stages of a run: its own subject, all panels, then the others in order."""
    return list(dict.fromkeys([session.source.stage, "all", *(name for name in STAGES if _fits(name, session))]))


def _fits(stage: str, session: Session) -> bool:
    world, shown = session.world, session.shown
    match stage:
        case "map":
            return world is not None and not world.arms
        case "pair":
            return session.settings_of(shown).kind in ("pairs", "reward model")
        case "conversation":
            return shown is not None and shown.sampled is not None and are_conversations(shown.sampled)
        case "tree":
            return session.settings_of(shown).rewarded
        case _:
            return True
