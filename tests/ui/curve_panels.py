"""An app of nothing but curve panels, and a run for them to draw."""

import msgspec
import numpy as np
from textual.app import App, ComposeResult
from textual.widget import Widget

from rlplay.trace.history import History
from rlplay.trace.records import Changed, Evaluated
from rlplay.trace.update import Update
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.curves.curve_panels import CurvePanels
from rlplay.ui.curves.run_details import RunDetails
from tests.recorded import SETTINGS, synthetic_update

CHOSEN = SETTINGS


def recorded(updates: int = 8, steps: int = 4) -> tuple[History, Update]:
    history, live = History(), Update(updates)
    for number in range(1, updates + 1):
        for record in synthetic_update(number, steps=steps):
            history.add(record)
            if number == updates:
                live.add(record)
        if number == 5:
            held = {"eval_reward": 0.4321}
            history.add(Evaluated(update=5, metrics=held, prompts=[], completions=[], rewards=np.zeros(1), seconds=1.0))
            history.add(Changed(update=6, phase="sample", name="epsilon", value=0.1, previous=0.2))
    return history, live


class Host(App):
    def __init__(self, history: History | None = None, live: Update | None = None, **settings) -> None:
        super().__init__()
        self.given = history, live, msgspec.structs.replace(CHOSEN, **settings)
        self.on_record = msgspec.structs.asdict(CHOSEN).keys()

    def compose(self) -> ComposeResult:
        yield CurvePanels()

    def on_mount(self) -> None:
        history, live, settings = self.given
        if history is not None:
            self.query_one(CurvePanels).take(RunDetails(on_record=self.on_record))
            self.query_one(CurvePanels).show(history, live, settings)

    @property
    def panels(self) -> list[CurvePanel]:
        return list(self.query(CurvePanel))


def title(panel: Widget) -> str:
    return panel._border_title.plain


def subtitle(panel: Widget) -> str:
    return panel._border_subtitle.plain
