"""User's functions that end the process, hang or raise what nobody catches: one line, and the run can go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rlplay.algorithms.own_choices import allow
from rlplay.algorithms.settings import Settings
from rlplay.containment import OwnError, within_limit
from rlplay.supervisor import GRACE
from rlplay.tasks.own_rewards import load_environment, load_reward, load_tools
from rlplay.tasks.own_task import make_task
from rlplay.tasks.task import Example
from rlplay.tasks.tools import Call

pytestmark = pytest.mark.usefixtures("trusts_all")

BAD = {
    "os._exit": ("os._exit(0)", "SystemExit: os._exit(0)"),
    "sys.exit": ("sys.exit(1)", "SystemExit: 1"),
    "GeneratorExit": ("raise GeneratorExit", "GeneratorExit"),
    "an exception of its own": ("raise type('Own', (BaseException,), {})('x')", "Own: x"),
    "StopIteration": ("next(iter([]))", "StopIteration"),
    "recursion": ("return f()", "RecursionError"),
    "out of memory": ("raise MemoryError", "MemoryError"),
    "a loop": ("while True: pass", "takes more than 1 s"),
    "a loop that catches": ("while True:\n    try: time.sleep(60)\n    except Exception: pass", "takes more than 1 s"),
    "sleep": ("time.sleep(60)", "takes more than 1 s"),
    "input": ("os.read(os.pipe()[0], 1)", "takes more than 1 s"),
    "a lock": ("threading.Lock().__enter__(); l = threading.Lock(); l.acquire(); l.acquire()", "takes more than 1 s"),
}


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLPLAY_REWARD_SECONDS", "1")


def written(folder: Path, body: str, inside: bool) -> str:
    head = "import os, re, sys, threading, time\n"
    indented = "\n".join(f"    {line}" for line in body.split("\n"))
    function = f"def f(*a, **k):\n{indented if inside else '    return [1.0]'}\n"
    called = "" if inside else f"def g(f=None):\n{indented.replace('f()', 'g()')}\ng()\n"
    path = folder / "own.py"
    path.write_text(head + function + called)
    return f"{path}:f"


@pytest.mark.parametrize("name", BAD)
def test_in_a_call_it_is_an_error_in_one_line(name: str, tmp_path: Path) -> None:
    body, words = BAD[name]
    entry = written(tmp_path, body, inside=True)
    for function in (load_reward(entry), load_environment(entry)):
        with pytest.raises(OwnError) as caught:
            function(prompts=["p"], completions=["c"])  # type: ignore[operator]
        assert words in str(caught.value)
        assert "own.py" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert os._exit.__module__ == "posix", "the real one is back"


@pytest.mark.parametrize("name", [name for name in BAD if name != "StopIteration"])
def test_at_import_it_is_an_error_in_one_line(name: str, tmp_path: Path) -> None:
    body, words = BAD[name]
    with pytest.raises(OwnError) as caught:
        load_reward(written(tmp_path, body, inside=False))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


OTHERS = {
    "a tool": ("def f(x: int = 0): {}", lambda entry: load_tools([entry], None).begin(ROW).replies([Call("f", {})])),
    "an asynchronous tool": (
        "async def f(x: int = 0): {}", lambda entry: load_tools([entry], None).begin(ROW).replies([Call("f", {})])
    ),
    "a factory": ("def f(): {}", lambda entry: load_tools([], entry)),
    "a reset": ("class f:\n    def reset(self, **row): {}", lambda entry: load_tools([], entry).asked(ROW)),
    "a method": (
        "class f:\n    def reset(self, **row): pass\n    def add(self): {}",
        lambda entry: load_tools([], entry).begin(ROW).replies([Call("add", {})]),
    ),
    "its reward": (
        "class f:\n    def reset(self, **row): pass\n    def get_reward(self): {}",
        lambda entry: load_tools([], entry).rewards()["f"](environments=[load_tools([], entry).begin(ROW).environment]),
    ),
    "a task": ("def f(): {}", make_task),
    "a surrogate": (
        "def f(xp, ratio, advantages): {}",
        lambda entry: allow("surrogate", entry, Settings()),
    ),
}  # fmt: skip
"""What else may be the user's: its source around a statement, and what calls it."""
ROW = Example("p", {})


@pytest.mark.parametrize("body", ["os._exit(0)", "sys.exit(1)", "raise type('Own', (BaseException,), {})('x')"])
@pytest.mark.parametrize("name", OTHERS)
def test_whatever_else_is_the_users_ends_nothing(name: str, body: str, tmp_path: Path) -> None:
    source, call = OTHERS[name]
    (tmp_path / "own.py").write_text("import os, sys, time\n" + source.format(body))
    with pytest.raises(OwnError, match=r"own\.py.*(os\._exit|SystemExit|Own: x)") as caught:
        call(f"{tmp_path / 'own.py'}:f")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a tool", "a task"])
def test_whatever_else_is_the_users_has_a_time_limit(name: str, tmp_path: Path) -> None:
    source, call = OTHERS[name]
    (tmp_path / "own.py").write_text("import time\n" + source.format("time.sleep(60)"))
    with pytest.raises(OwnError, match=r"own\.py: f takes more than 1 s; RLPLAY_REWARD_SECONDS"):
        call(f"{tmp_path / 'own.py'}:f")


def test_two_threads_at_once_leave_the_real_end(tmp_path: Path) -> None:
    entry = written(tmp_path, "k['met'].wait(); return [1.0]", inside=True)
    met = threading.Barrier(2)
    calls = [threading.Thread(target=load_environment(entry), kwargs={"met": met}) for _ in range(2)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert os._exit.__module__ == "posix"


def test_a_process_that_it_forks_goes_no_further(tmp_path: Path) -> None:
    body = "pid = os.fork()\nif pid: os.waitpid(pid, 0)\nreturn pid"
    function = load_environment(written(tmp_path, body, inside=True))
    mark = tmp_path / "twice"
    if not function():
        mark.touch()
        os._exit(0)
    assert not mark.exists(), "the copy went on with the run"


def test_a_message_is_short_and_may_fail(tmp_path: Path) -> None:
    for body, words in (
        ("raise ValueError('x' * 10**6)", "ValueError: xxx"),
        ("raise type('Own', (Exception,), {'__str__': lambda self: 1 / 0})", "Own: its message cannot be read"),
    ):
        with pytest.raises(OwnError) as caught:
            load_reward(written(tmp_path, body, inside=True))(completions=["c"])
        assert words in str(caught.value)
        assert len(str(caught.value)) < 2000


def test_a_process_that_it_forks_may_end(tmp_path: Path) -> None:
    body = "pid = os.fork()\nif not pid: os._exit(7)\nreturn [float(os.waitpid(pid, 0)[1] >> 8)]"
    assert load_reward(written(tmp_path, body, inside=True))(completions=["c"]) == [7.0]


def test_ctrl_c_is_no_mistake_of_the_function(tmp_path: Path) -> None:
    entry = written(tmp_path, "raise KeyboardInterrupt", inside=True)
    with pytest.raises(KeyboardInterrupt):
        load_reward(entry)(completions=["c"])


def test_what_ends_in_time_is_left_alone() -> None:
    before = signal.getsignal(signal.SIGUSR2)
    for _ in range(50):
        with within_limit("it"):
            pass
    assert signal.getsignal(signal.SIGUSR2) is before


AGAIN = "rlplay run --resume here.rlplay"
HEAD = f"import os, signal, sys, time, threading\nfrom rlplay.supervisor import watched\nwith watched({AGAIN!r}):\n"


def started(body: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + body], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


@pytest.mark.parametrize("end", ["os.abort()", "os._exit(0)", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 11)"])
def test_a_run_that_is_gone_without_a_word_gets_one(end: str) -> None:
    _, err = started(f"    {end}\n").communicate(timeout=60)  # the end of its output is that of the watch, too
    assert err.endswith(f"the run ended unexpectedly; finished updates are saved. To continue: {AGAIN}\n")


def test_a_run_that_ends_as_it_should_gets_none() -> None:
    assert started("    pass\n").communicate(timeout=60) == ("", "")


HANGS: dict[str, Callable[[], str]] = {
    "where no signal is answered": lambda: "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n{}    time.sleep(99)\n",
    "in a loop that catches all": lambda: (
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n{}"
        "    while True:\n        try: time.sleep(99)\n        except BaseException: pass\n"
    ),
    "in a thread at the end": lambda: "    threading.Thread(target=time.sleep, args=(99,)).start()\n{}",
    "in a function at the end": lambda: "    import atexit; atexit.register(time.sleep, 99)\n{}",
}


@pytest.mark.parametrize("name", HANGS)
def test_ctrl_c_twice_ends_a_run_that_hangs(name: str) -> None:
    run = started(HANGS[name]().format("    print('there', flush=True)\n"))
    assert run.stdout is not None
    assert run.stdout.readline() == "there\n"
    for _ in range(2):
        time.sleep(0.3)  # as a hand does; signals of one kind that wait are one
        os.killpg(run.pid, signal.SIGINT)
    begun = time.monotonic()
    run.communicate(timeout=60)
    assert run.returncode != 0 or name.endswith("end")
    assert time.monotonic() - begun < GRACE + 20
