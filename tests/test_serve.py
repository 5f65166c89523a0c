"""The playground in a browser: the real server, its protocol spoken by hand, and a real browser where there is one."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyte
import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, web

from rlplay.cli import main as cli
from rlplay.cli.serve import TABS, PlaygroundServer, bound
from rlplay.trace.runfile import RunReader
from rlplay.trace.runfile_format import RunFileError
from tests.terminal import QUERY, child_of, rlplay, running

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 40
HANDED_ON = ["--device", "cpu", "--set", "beta=0.1", "--set", "epsilon=0.3", "--seed", "3", "--updates", "9"]


class Served:
    """A server of `two-plus-two` on a free port."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            rlplay("serve", "two-plus-two", "--port", "0", *HANDED_ON),
            env=os.environ | {"RLPLAY_HOME": str(home)}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=([\w-]{43,})", self.first_line)
        assert found is not None
        self.address, self.url, self.token = found[0], found[1], found[2]

    def app(self) -> int:
        """The process of the one tab."""
        shell = child_of(self.process.pid, "two-plus-two")
        assert shell is not None
        return child_of(shell, "two-plus-two") or shell

    async def engine(self) -> int:
        """The engine's process, once it is there."""
        return await _there(lambda: child_of(self.app(), "rlplay.engine.engine_process"))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    server = Served(tmp_path)
    yield server
    server.process.send_signal(signal.SIGINT)
    server.process.wait(PATIENCE)


async def _there(found: Any) -> Any:
    """What `found` gives, once it gives anything."""
    end = time.monotonic() + PATIENCE
    while not (thing := found()):
        assert time.monotonic() < end, "never came"
        await asyncio.sleep(0.02)
    return thing


def _gone(*pids: int) -> bool:
    return not any(map(running, pids))


class Tab:
    """What a page does: draw what comes, send what is typed."""

    def __init__(self, web: ClientWebSocketResponse) -> None:
        self.web = web
        self.screen = pyte.Screen(120, 35)
        self._stream = pyte.Stream(self.screen)

    async def wait_for(self, words: str) -> None:
        while words not in "\n".join(self.screen.display):
            message = await asyncio.wait_for(self.web.receive(), PATIENCE)
            assert message.type in (WSMsgType.BINARY, WSMsgType.TEXT), f"{words!r} never came: {message}"
            if message.type is WSMsgType.BINARY:
                self._stream.feed(QUERY.sub("", message.data.decode()))

    async def press(self, key: str) -> None:
        await self.web.send_json(["stdin", key])


@asynccontextmanager
async def tab(served: Served) -> AsyncIterator[Tab]:
    async with (
        ClientSession() as session,
        session.ws_connect(f"{served.url}/ws/{served.token}?width=120&height=35") as web,
    ):
        yield Tab(web)


async def test_a_tab_shows_the_playground_and_ends_it(served: Served) -> None:
    assert served.first_line.count("\n") == 1
    async with tab(served) as page:
        await page.wait_for("paused")
        await page.press("?")
        await page.wait_for("Every answer of the update")
        app, engine = served.app(), await served.engine()
        typed = Path(f"/proc/{app}/cmdline").read_text().split("\0")
        assert all(word in typed for word in HANDED_ON)
        await page.web.send_json(["resize", {"width": 80, "height": 24}])
    await _there(lambda: _gone(app, engine))
    assert served.process.poll() is None, "other tabs go on"


async def test_the_app_ends_with_a_server_that_is_killed(served: Served) -> None:
    async with tab(served) as page:
        await page.wait_for("paused")
        app, engine = served.app(), await served.engine()
        served.process.kill()
        await _there(lambda: _gone(app, engine))


async def test_only_this_machines_own_pages_are_answered(served: Served) -> None:
    port = served.url.rpartition(":")[2]
    async with ClientSession() as session:
        for address, headers in (
            (f"/?token={served.token}", {"Host": f"playground.example:{port}"}),
            (f"/ws/{served.token}", {"Origin": "http://playground.example"}),
            (f"/ws/{served.token}", {"Origin": f"http://127.0.0.1:{int(port) ^ 1}"}),
            ("/", {}), ("/?token=", {}), (f"/?token={served.token[:-1]}", {}), ("/?token=%C3%A9", {}),
            ("/ws", {}), ("/ws/", {}), (f"/ws?token={served.token}", {}), (f"/ws/{served.token}x", {}),
        ):  # fmt: skip
            async with session.get(served.url + address, headers=headers) as answer:
                assert answer.status == 403, (address, headers)
        async with session.get(f"http://localhost:{port}/?token={served.token}") as answer:
            assert (answer.status, str(answer.url)) == (200, served.address)
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"], "no fonts from elsewhere"
            page = await answer.text()
            assert "<title>rlplay · two-plus-two</title>" in page
            assert page.index("keyboard.focus()") < page.index("</head>"), "keys work before a click"
    assert child_of(served.process.pid, "two-plus-two") is None, "nothing was started for them"
    listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    places = {line.split()[1] for line in listening.splitlines() if f":{int(port):04X} 0" in line and " 0A " in line}
    assert places == {f"0100007F:{int(port):04X}"}, "on the loopback address alone"


async def test_no_more_than_so_many_tabs_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    async def quiet(_self: PlaygroundServer, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for _ in socket:
            pass
        return socket

    monkeypatch.setattr(PlaygroundServer, "handle_websocket", quiet)
    door = bound(0)
    server = PlaygroundServer(["two-plus-two"], door.getsockname()[1])
    page, _, token = server.address.partition("?token=")
    socket = f"{page}ws/{token}"
    monkeypatch.setattr(server, "on_startup", lambda _app: asyncio.sleep(0))
    runner = web.AppRunner(await server.application())
    await runner.setup()
    await web.SockSite(runner, door).start()
    async with ClientSession() as session:

        async def status(address: str) -> int:
            async with session.get(address) as answer:
                return answer.status

        tabs = [await session.ws_connect(socket) for _ in range(TABS)]
        assert [await status(server.address), await status(socket)] == [503, 503]
        await tabs.pop().close()
        while await status(server.address) == 503:  # the server notices in its own time
            await asyncio.sleep(0.01)
        tabs.append(await session.ws_connect(socket))
        assert await status(socket) == 503
        for each in tabs:
            await each.close()
    await runner.cleanup()


@pytest.mark.parametrize("missing", [False, True])
def test_an_obstacle_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        if missing:
            monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
        with pytest.raises(SystemExit) as left:
            cli.main(["serve", "--port", str(port)])
    out, err = capsys.readouterr()
    assert (left.value.code, out, err.count("\n")) == (2, "", 1)
    assert ("pip install textual-serve" if missing else f"port {port} is not available") in err


class Chromium:
    """A headless browser with one page, driven by its DevTools protocol."""

    def __init__(self, web: ClientWebSocketResponse) -> None:
        self.web = web
        self._calls = 0
        self.asked: list[str] = []  # addresses that a response came from

    async def call(self, method: str, **params: Any) -> Any:
        self._calls += 1
        await self.web.send_json({"id": self._calls, "method": method, "params": params})
        while True:
            answer = await asyncio.wait_for(self.web.receive_json(), PATIENCE)
            if answer.get("method") == "Network.responseReceived":
                self.asked.append(answer["params"]["response"]["url"])
            if answer.get("id") == self._calls:
                return answer.get("result")

    async def click(self, x: int, y: int) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def type(self, key: str) -> None:
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Chromium]:
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
    process = subprocess.Popen(
        [str(CHROMIUM), *options, f"--user-data-dir={folder}", "--window-size=1400,900", "about:blank"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        address = next(line.split()[-1] for line in process.stderr if "DevTools listening" in line)
        async with ClientSession() as session:
            async with session.get(f"http://{address.split('/')[2]}/json") as answer:
                page = next(page for page in await answer.json() if page["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as web:
                yield Chromium(web)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _updates(home: Path) -> list[int]:
    try:
        (run,) = home.glob("runs/*.rlplay")
        with RunReader(run) as reader:
            return reader.updates()
    except (ValueError, RunFileError):
        return []


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)")
async def test_a_real_browser_plays_an_update(served: Served, tmp_path: Path) -> None:
    async with chromium(tmp_path / "profile") as browser:
        await browser.call("Network.enable")
        await browser.call("Page.navigate", url=served.address)
        engine = await _there(lambda: child_of(served.process.pid, "two-plus-two")) and await served.engine()
        app = served.app()
        while "-first-byte" not in str(await browser.call("Runtime.evaluate", expression="document.body.className")):
            await asyncio.sleep(0.05)
        await browser.click(700, 300)
        await browser.type("u")
        await _there(lambda: 1 in _updates(tmp_path))
        assert browser.asked
        assert all(address.startswith((served.url, "data:", "blob:")) for address in browser.asked)
        await browser.call("Page.navigate", url="about:blank")
        await _there(lambda: _gone(app, engine))
