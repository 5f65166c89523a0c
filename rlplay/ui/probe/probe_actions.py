"""What the verb that asks the model does."""

from __future__ import annotations

from typing import Any

from rlplay.ui.main.playground import Action, Playground


async def _probe(play: Playground, argument: Any) -> None:
    """Ask the model about the token under the cursor, or about a script's prompt; see the verb `probe`."""
    from rlplay.ui.probe.probe_screen import ProbeScreen

    session, probing, at = play.session, play.session.probing, argument if isinstance(argument, dict) else {}
    if "prompt" in at:
        probing.type(at["prompt"], at.get("columns"), at.get("plain", False))
    else:
        if "completion" in at or "token" in at:
            play.point(at.get("completion", 0), at.get("token", 0))
        probing.open(None if session.shown is None else session.shown.sampled, play.panels.tokens.cursor)
    play.app.push_screen(ProbeScreen(session, at.get("then", ""), at.get("force", "")))


ACTIONS: dict[str, Action] = {
    "probe": _probe,
}
