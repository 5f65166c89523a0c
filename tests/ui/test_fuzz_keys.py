"""What random keys found out: how they may leave."""

from __future__ import annotations

from pathlib import Path

from textual.widgets import Input

from rlplay.ui.app import RlplayApp
from rlplay.ui.session.sources import ReplaySource
from tests.fuzz_keys import opened
from tests.recorded import synthetic_run
from tests.ui.stage import until


async def test_the_palette_can_leave_without_a_key_that_means_it(tmp_path: Path) -> None:
    """A way for random keys to end a round with status 0: `ctrl+p`, letters that find the command to leave, `enter`."""
    app = RlplayApp(ReplaySource(synthetic_run(tmp_path / "a.rlplay", updates=3)))
    async with opened(app, (120, 35)) as pilot:
        await pilot.press("ctrl+p")
        await until(pilot, lambda: bool(app.screen.query(Input)))
        await pilot.press(*"leave")
        await pilot.pause()
        for _ in range(20):
            if not app.is_running:
                break
            await pilot.press("enter")
            await pilot.pause()
        assert not app.is_running
        assert app.return_code == 0
