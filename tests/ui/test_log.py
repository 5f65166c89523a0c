"""The log: the engine's messages, filtered, and the place and time of the last update."""

import pytest
from textual.app import App
from textual.widgets import RichLog, Static

from rlplay.link.messages import LogLine, Recorded
from rlplay.trace.records import Finished
from rlplay.ui.log.log_screen import LogScreen
from rlplay.ui.session.session import Session
from tests.recorded import synthetic_started, synthetic_update


class NoSource:
    live = own_engine = True


@pytest.fixture
def session() -> Session:
    session = Session(NoSource())
    for line in (
        LogLine("debug", "kernel warmed up"),
        LogLine("info", "ready"),
        LogLine("warning", "[red]odd\x1b[31m text\nsecond line"),
        LogLine("error", "it broke"),
    ):
        session.apply(line)
    return session


class Host(App):
    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def on_mount(self) -> None:
        self.push_screen(LogScreen(self.session))

    def text(self) -> str:
        return "\n".join(strip.text for strip in self.screen.query_one(RichLog).lines)


async def test_messages_are_shown_with_time_and_level_and_obey_nothing(session):
    app = Host(session)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        lines = app.text().split("\n")
        assert [line.split()[1] for line in lines if line[:1].isdigit()] == ["debug", "info", "warning", "error"]
        assert all(line[2] == line[5] == ":" for line in lines if line[:1].isdigit())
        assert "[red]odd␛[31m text" in app.text()
        assert any(line.strip() == "second line" for line in lines)


async def test_the_filter_leaves_out_what_is_less_grave(session):
    app = Host(session)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("right", "right")
        assert "ready" not in app.text()
        assert "it broke" in app.text()
        await pilot.press("right", "right")
        assert "kernel warmed up" in app.text()


async def test_copying_takes_what_is_shown(session):
    app = Host(session)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("right", "right", "right", "y")
        assert app.clipboard.endswith("error it broke")
        assert "ready" not in app.clipboard


async def test_it_follows_what_comes_while_it_is_open(session):
    app = Host(session)
    async with app.run_test(size=(100, 30)) as pilot:
        session.apply(LogLine("info", "news"))
        app.screen.follow()
        await pilot.pause()
        assert "news" in app.text()


async def test_the_head_names_the_place_and_the_time_of_each_part(session):
    session.apply(Recorded(synthetic_started()))
    for record in synthetic_update(1):
        session.apply(Recorded(record))
    finished = record
    assert isinstance(finished, Finished)
    app = Host(session)
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause()
        assert app.screen.query_one(RichLog).size.height < 10, "no more room than the messages need"
        head = str(app.screen.query_one(Static).render())
        assert "1,234,567 parameters · cpu · float32 · 1 thread" in head
        rows = {line.split()[0]: line for line in head.split("\n")}
        for phase, seconds in finished.timings.items():
            assert f"{seconds:.2f} s" in rows[phase]
        assert rows["look"].endswith("the answers under the new policy")
        assert rows["sample"].count("▇") > rows["backward"].count("▇") > rows["score"].count("▇")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"threads": 1, "cores": 1}, "float32 · 1 thread · seed"),
        ({"threads": 3, "cores": 4}, "float32 · 3 threads on 4 cores · seed"),
        ({"threads": 2, "cores": 4}, "float32 · 2 threads on 4 cores · seed"),
        ({"threads": 1, "cores": 2, "processes": 2}, "float32 · 2 processes, 1 thread each · seed"),
        ({"threads": 0}, "float32 · seed"),
    ],
)
async def test_the_head_says_how_many_threads_compute_and_why(session, changes, words):
    session.apply(Recorded(synthetic_started(**changes)))
    app = Host(session)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        assert words in str(app.screen.query_one(Static).render())


async def test_a_low_screen_keeps_its_rows_for_the_messages(session):
    session.apply(Recorded(synthetic_started()))
    for record in synthetic_update(1):
        session.apply(Recorded(record))
    app = Host(session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        head = " ".join(str(app.screen.query_one(Static).render()).split())
        assert "sample 47% · score 1% · reference 6% · forward 12% · backward 23% · look 12%" in head


async def test_an_empty_log_says_so():
    app = Host(Session(NoSource()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.text().strip() == "no messages"


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_what_is_too_long_goes_on_below_where_it_began(session, size):
    words = " ".join(f"word{n}" for n in range(60))
    session.apply(LogLine("warning", f"{words}\n    indented {'x' * 300}"))
    app = Host(session)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.pause()
        rows = [strip.text.rstrip() for strip in app.screen.query_one(RichLog).lines]
        first = next(n for n, row in enumerate(rows) if "word0 " in row)
        begins = rows[first].index("word0")
        below = rows[first + 1 :]
        assert len(below) > 4
        assert all(row[:begins].strip() == "" and row[begins:].strip() for row in below)
        assert any(row[begins:].startswith("    indented") for row in below)
        assert " ".join(" ".join([rows[first][begins:], *(row[begins:] for row in below)]).split()).startswith(words)
        width = app.screen.query_one(RichLog).scrollable_content_region.width
        assert max(map(len, rows)) <= width
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        await pilot.pause()
        widest = max(len(strip.text.rstrip()) for strip in app.screen.query_one(RichLog).lines)
        width = app.screen.query_one(RichLog).scrollable_content_region.width
        assert width - 8 <= widest <= width, "lines follow a new width"
