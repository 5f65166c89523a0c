"""What the user's code may not do to its process: end it, hold it up for good, raise what nobody expects.

This is the inside. What Python cannot refuse, such as a crash or a call that keeps the interpreter, is for the process
outside: `supervisor.py`. A call that ends the process here would end a run with the status that it chose, 0 perhaps.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

LIMIT = 600.0
"""Seconds that a call of a user's function may take, unless RLPLAY_REWARD_SECONDS is another number."""
_DIGITS = 8


class OwnError(ValueError):
    """A file of the user's that cannot be used: one line with the file, the place and what to do."""


@contextmanager
def contained(what: str, failed: Callable[[BaseException], OwnError], seconds: float | None = None) -> Iterator[None]:
    """Run the user's code: whatever it raises but a ctrl+c becomes what `failed` makes of it.

    It can neither end the process with os._exit nor take longer than `within_limit` allows. A process that it forks
    ends with it.
    """
    process = os.getpid()
    try:
        with _no_end(process), within_limit(what, seconds):
            yield
    except (KeyboardInterrupt, OwnError):
        raise
    except BaseException as error:  # a script that ends itself must not end the run
        raise failed(error) from error
    finally:
        if os.getpid() != process:
            _end(0)


_end, _ends = os._exit, threading.Lock()
_inside = 0


@contextmanager
def _no_end(process: int) -> Iterator[None]:
    """Let os._exit raise SystemExit in this process, in all of its threads."""
    global _inside  # noqa: PLW0603 - os._exit is one for all threads

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process:  # a process that it has forked may end
            _end(status)
        raise SystemExit(f"os._exit({status})")

    with _ends:
        _inside += 1
        os._exit = refuse
    try:
        yield
    finally:
        with _ends:
            _inside -= 1
            if not _inside:
                os._exit = _end


class _TooSlow(BaseException):
    """Raised inside a user's function that has had its time; no `except Exception` there keeps it."""


@contextmanager
def within_limit(what: str, seconds: float | None = None) -> Iterator[None]:
    """Abandon what the user's code does in the context once it has taken `seconds`, with an OwnError.

    Without them `LIMIT` holds, or what the environment variable RLPLAY_REWARD_SECONDS says instead. It works in the
    main thread alone, of systems with signals, and cannot end what never lets go of the interpreter, such as a hopeless
    regular expression.
    """
    given = os.environ.get("RLPLAY_REWARD_SECONDS", "")
    limit = float(given) if given.isascii() and given.isdecimal() and 0 < len(given) < _DIGITS else LIMIT
    remedy = "RLPLAY_REWARD_SECONDS sets another limit" if seconds is None else "does a loop never end?"
    limit = limit if seconds is None else seconds
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGUSR2"):
        yield
        return
    thread, over = threading.get_ident(), threading.Event()

    def give_up(_signal: int, _frame: object) -> None:
        if not over.is_set():
            raise _TooSlow

    def wait() -> None:
        patience = limit
        while not over.wait(patience):
            signal.pthread_kill(thread, signal.SIGUSR2)
            patience = 1.0  # again, in case the function has caught it

    before = signal.signal(signal.SIGUSR2, give_up)
    clock = threading.Thread(target=wait, name="time limit", daemon=True)
    clock.start()
    try:
        yield
    except _TooSlow:
        over.set()
        raise OwnError(f"{what} takes more than {limit:g} s; {remedy}") from None
    finally:
        over.set()
        clock.join()
        signal.signal(signal.SIGUSR2, before)
