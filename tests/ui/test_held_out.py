"""The view of the held-out answers: the newest up to the update on the screen, with prompt, columns and reward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from textual.containers import VerticalScroll

from rlplay.trace.records import Evaluated, Rewound
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.ui.app import RlplayApp
from rlplay.ui.held_out.held_out_screen import HeldOutScreen
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session import sources
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import synthetic_evaluated, synthetic_run, synthetic_started, synthetic_update
from tests.ui.stage import on_screen, pressed, settled, shown, until


def words(app: Any) -> tuple[str, str]:
    assert isinstance(app.screen, HeldOutScreen)
    return str(app.screen.query_one(VerticalScroll).border_title), shown(app.screen.query_one(SteadyStatic))


async def test_it_shows_the_newest_answers_up_to_the_update_on_the_screen() -> None:
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        await settled(pilot)
        await pressed(pilot, "e")
        assert words(app) == ("Held-out answers", "No held-out answers are on record up to this update.")
        source.evaluated = [synthetic_evaluated(0), synthetic_evaluated(2), synthetic_evaluated(9)]
        source.records(synthetic_update(3))
        await settled(pilot)
        app.screen.follow()
        title, text = words(app)
        assert title == "Held-out answers after update 2 · 2 answers · mean reward 0.70"
        assert text.count("How many apples") == 1, "one prompt, two answers"
        assert text.index("1.20  3 + 4 = 7") < text.index("0.20  3 + 4 = 8")
        await pilot.press("o")
        _, text = words(app)
        assert text.index("1.20  3 + 4 = 7") > text.index("0.20  3 + 4 = 8"), "the worst first"
        await pressed(pilot, "e")
        assert not isinstance(app.screen, HeldOutScreen)


async def test_the_cursor_goes_from_answer_to_answer_however_long_they_are_and_whatever_the_prompts_say() -> None:
    async with on_screen(1, size=(80, 24)) as (app, source, pilot):
        answers = ["a", "long " * 40, "b"]
        source.evaluated = [
            Evaluated(update=0, metrics={}, prompts=["▸ 1", "▸ 2", "▸ 3"], completions=answers,
                      rewards=np.zeros(3, dtype=np.float32), seconds=0.1)
        ]  # fmt: skip
        await pressed(pilot, "e", "enter")
        cursor, panel = app.screen.query_one("#cursor"), app.screen.query_one(VerticalScroll)
        rows = []
        for _ in answers:
            rows.append(cursor.region.y - panel.scrollable_content_region.y)
            await pressed(pilot, "down")
        assert rows == [1, 4, 9], "the second takes three rows"


async def test_a_key_there_does_not_read_the_run_file_or_draw_the_answers_again(monkeypatch: Any) -> None:
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        source.evaluated = [synthetic_evaluated(0)]
        await pressed(pilot, "e")
        done: list[object] = []
        monkeypatch.setattr(source, "held_out", done.append)
        monkeypatch.setattr(SteadyStatic, "say", lambda _self, words: done.append(words))
        await pressed(pilot, "down")
        assert app.screen._at == 1
        assert done == []


async def test_it_reads_the_run_file_only_when_there_are_others(monkeypatch: Any) -> None:
    async with on_screen(size=(120, 35)) as (_, source, pilot):
        await settled(pilot)
        await pressed(pilot, "e")
        reads: list[int] = []
        monkeypatch.setattr(source, "held_out", reads.append)
        source.status(0, running=True)
        await settled(pilot)
        assert reads == [], "the run went on, without another evaluation"
        evaluated = msgspec.structs.replace(synthetic_evaluated(2), metrics={"eval_reward": 0.7})
        source.records([*synthetic_update(2), evaluated])
        await settled(pilot)
        assert reads == [2]


async def test_it_reads_once_when_it_opens_and_again_once_uncovered(monkeypatch: Any) -> None:
    async with on_screen(1, size=(120, 35)) as (_, source, pilot):
        reads: list[int] = []
        monkeypatch.setattr(source, "held_out", reads.append)
        await pressed(pilot, "e")
        await settled(pilot)
        assert reads == [1]
        await pressed(pilot, "ctrl+p")
        assert reads == [1]
        await pressed(pilot, "escape")
        assert reads == [1, 1]


async def test_it_follows_a_recording_that_grows(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sources, "POLL_SECONDS", 0.02)
    app = RlplayApp(ReplaySource(synthetic_run(tmp_path / "a.rlplay", updates=3)))
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app.play.session.status is not None)
        await pressed(pilot, "e")
        assert "after update 2" in words(app)[0]
        writer = RunWriter.reopen(tmp_path / "a.rlplay")
        for metrics, reward in (({"eval_reward": 0.5}, 0.5), ({"eval_reward": 0.25}, 0.25), ({}, 0.75)):
            rewards = np.full(2, reward)
            writer.append(msgspec.structs.replace(synthetic_evaluated(3), metrics=metrics, rewards=rewards))
            title = f"Held-out answers after update 3 · 2 answers · mean reward {reward:.2f}"
            await until(pilot, lambda title=title: words(app)[0] == title)
        writer.close()


async def test_columns_are_beside_the_prompt_and_long_answers_fold() -> None:
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        odd = msgspec.structs.replace(
            synthetic_evaluated(0), columns=[{"answer": "7\x1b[31m"}, {"answer": 8}],
            completions=["[b]" + "long " * 200 + "end", "short"], rewards=np.array([np.nan, 1.0]),
        )  # fmt: skip
        source.evaluated = [odd]
        await settled(pilot)
        await pressed(pilot, "e")
        title, text = words(app)
        assert title == "Held-out answers before training · 2 answers · mean reward 1.00"
        assert "How many apples has Tom? · answer 7␛[31m" in text
        assert "How many apples has Tom? · answer 8" in text
        assert "[b]long" in text
        assert "end" not in text
        await pilot.press("enter")
        assert "long end" in words(app)[1]


def test_a_run_file_gives_the_newest_of_the_live_branch(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    for number in range(5):
        writer.append(synthetic_evaluated(number))
    writer.append(Rewound(update=2, abandoned=4))
    writer.close()
    with RunReader(writer.path) as reader:
        assert [found and found.update for found in map(reader.held_out, (0, 1, 9))] == [0, 1, 2]
