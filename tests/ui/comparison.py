"""Two recorded runs on one comparison screen, and what several tests read off it."""

from textual.widgets import Static

from rlplay.ui.app import RlplayApp
from rlplay.ui.compare.compare_screen import CompareScreen
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import synthetic_run
from tests.ui.stage import settled

SIZE = (160, 45)


def compared(tmp_path, updates=(4, 3), seeds=(0, 0)):
    runs = [
        ReplaySource(synthetic_run(tmp_path / f"{name}.rlplay", *shape))
        for name, *shape in zip("abcdefgh", updates, seeds, strict=False)
    ]
    return RlplayApp(runs[0], others=runs[1:])


async def opened(pilot):
    await settled(pilot)
    await settled(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, CompareScreen)
    screen.follow()
    await settled(pilot)
    return screen


def head(screen):
    return str(screen.query_one("#runs", Static).render())
