"""Seeded mutants of everything that strangers write: run files, scenarios, share codes, command lines, curves, keys.

A kind's `play` plays one case of a seed and raises AssertionError if it is anything but fine or refused in one line.
`python -m tests.fuzz` plays full counts, `python -m tests.fuzz scenarios 500 7` 500 cases from case 7 on; a case that
fails is named by its kind and number, and is the same every time.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import importlib
import io
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import msgspec

from rlplay.algorithms.setting_values import decoded
from rlplay.cli import main as cli
from rlplay.export.completion_rows import rows
from rlplay.scenario.loader import ScenarioError, load, source
from rlplay.scenario.names import bundled
from rlplay.scenario.script import parse
from rlplay.scenario.share import PREFIX, Shared, ShareError, shared_in
from rlplay.trace.playhead import at, length
from rlplay.trace.runfile import RunFileError, RunReader
from rlplay.trace.text import QUOTED
from tests.fuzz_curves import curves
from tests.fuzz_keys import keys
from tests.recorded import synthetic_evaluated, synthetic_run

ODD = (
    "", "0", "-1", "1e308", ".inf", ".nan", "9" * 30, "9" * 5_000, "[" * 3_000, "{a: " * 500, "&x [*x]", "*x", "<<: *x",
    "!!python/object/apply:os.system [true]", "!!binary x", '"\\ud800"', "\x00", "\x1b]0;owned\x07", "\u202e", "\ufeff",
    "'", '"', ":", "- ", "? ", "| ", "> ", "%", "---", "...", "~", "yes", "2020-01-01", "٣", "../../x", "/dev/zero",
    "evil.py:f", "os:system", "x" * 10_000, "é", "東", "\t", "\n", "\r\n", "#",
)  # fmt: skip


def text_mutant(text: str, dice: random.Random) -> str:
    """`text` with one to four random changes."""
    for _ in range(dice.randint(1, 4)):
        lines = text.split("\n")
        a, b = sorted(dice.randrange(len(text) + 1) for _ in range(2))
        line, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        match dice.randrange(8):
            case 0:
                text = text[:a] + dice.choice(ODD) + text[a:]
            case 1:
                text = text[:a] + text[min(b, a + 20) :]
            case 2:
                lines[line], lines[other] = lines[other], lines[line]
                text = "\n".join(lines)
            case 3:
                text = "\n".join([*lines[:line], lines[other], *lines[line:]])
            case 4:
                key, colon, _ = lines[line].partition(":")
                text = "\n".join([*lines[:line], f"{key}{colon} {dice.choice(ODD)}", *lines[line + 1 :]])
            case 5:
                text = text[:a] + chr(dice.choice((dice.randrange(128), dice.randrange(0x3000)))) + text[a + 1 :]
            case 6:
                indent = dice.choice(("", " ", "  ", "    ", "\t"))
                text = "\n".join([*lines[:line], indent + lines[line].strip(), *lines[line + 1 :]])
            case _:
                text = "\n".join(lines[: line + 1]) if dice.random() < 0.2 else text[:a] + text[a:b] * 2 + text[b:]
    return text[:200_000]


def in_one_line(error: BaseException) -> None:
    """AssertionError if an error's message is more than a line, or none."""
    assert str(error), f"{type(error).__name__} without a word"
    assert "\n" not in str(error), f"more than a line: {str(error)[:200]}"
    in_brief(str(error))


def in_brief(said: str) -> None:
    """AssertionError if a message quotes more of an odd value than an error may."""
    parts = {odd[at : at + QUOTED + 1] for odd in ODD for at in range(4) if len(odd) > QUOTED + 4}
    found = [part for part in parts if part in said]
    assert not found, f"more than {QUOTED} characters of a value: {said[:200]}"


def scenarios(dice: random.Random, folder: Path) -> None:
    """A mutant of a bundled scenario is read and parsed, or refused."""
    path = folder / "mine.yaml"
    path.write_text(text_mutant(source(dice.choice(bundled())), dice), encoding="utf-8", errors="surrogatepass")
    try:
        scenario = load(path)
    except ScenarioError as error:
        in_one_line(error)
        return
    parse(scenario.script)


def codes(dice: random.Random, folder: Path) -> None:
    """A damaged code, or a whole one with other content, is played or refused."""
    name = dice.choice(bundled())
    values: list[Any] = [None, 0, -1, 2**63, 2**64 - 1, 1.5, "x", [], {}, *ODD]
    if dice.random() < 0.5:
        code = list(Shared(name, dice.randrange(100), 3, None, {"beta": 0.1}).code)
        for _ in range(dice.randint(1, 3)):
            code[dice.randrange(len(code))] = dice.choice("abcXYZ019-_=+/ é\x00")
        text = "".join(code)[: dice.choice((None, 5, 20))]
    else:
        fields: list[Any] = [name, 0, None, None, {}, 0, {}]
        for _ in range(dice.randint(1, 3)):
            fields[dice.randrange(len(fields))] = dice.choice(
                [*values, {dice.choice(["beta", "reward_weights", "surrogate", "algorithm", "x"]): dice.choice(values)}]
            )
        try:
            content = msgspec.msgpack.encode(fields[: dice.randint(1, 7)])
        except UnicodeEncodeError:
            return
        if dice.random() < 0.2:
            content += bytes([dice.randrange(256)]) * dice.randrange(50_000)
        checked = binascii.crc32(content).to_bytes(4, "big") + content
        text = PREFIX + base64.urlsafe_b64encode(checked).decode().rstrip("=")
    try:
        shared_in(text).scenario_with()
    except (ShareError, ScenarioError) as error:
        in_one_line(error)


WORDS = (
    "run", "show", "list", "runs", "export", "replay", "compare", "resume", "demo", "serve", "settings", "algorithms",
    "new", "rm", "health", "import", "attach", "last", "two-plus-two", "mine.yaml", "nowhere.yaml", "a.rlplay",
    "--seed",
    "--set", "--out", "--updates", "--model", "--dataset", "--reward", "--algorithm", "--device", "--json", "--format",
    "--update", "--port", "--columns", "--chat_template_kwargs", "--environment", "--dtype", "--lora_r", "--knobs",
    "--help", "--version", "--sizes", "--yes", "--from", "--world", "--trust", "--resume", "jsonl", "npz", "beta=1",
    "reward_weights={correct: 1}", "grpo", "cpu", "cuda:9", "-", "--", "=", "rlp1-AAAA", "bfloat16", "score.py:f",
)  # fmt: skip


def lines(dice: random.Random, folder: Path) -> None:
    """A command line of words that have a meaning somewhere ends with status 0, 1 or 2, and at most a line."""
    chosen = [dice.choice(WORDS if dice.random() < 0.85 else ODD).replace("\0", "") for _ in range(dice.randint(1, 6))]
    out, err, here = io.StringIO(), io.StringIO(), Path.cwd()
    status: Any = None
    (folder / "mine.yaml").write_text(source("two-plus-two"))
    os.chdir(folder)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            # What would train or serve for minutes is fine once it begins.
            mock.patch("rlplay.engine.headless.run", return_value=0),
            mock.patch("rlplay.cli.serve.serve"),
        ):
            cli.main(chosen)
    except SystemExit as left:
        status = left.code
    finally:
        os.chdir(here)
    said = [line for line in err.getvalue().splitlines() if line]
    assert status in (None, 0, 1, 2), f"{chosen}: status {status}: {said}"
    assert status in (None, 0) or len(said) <= 1, f"{chosen}: {said}"
    in_brief(err.getvalue())


@cache
def _whole_run() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = synthetic_run(Path(folder) / "whole.rlplay", updates=3)
        from rlplay.trace.runfile import RunWriter

        writer = RunWriter.reopen(path)
        writer.append(synthetic_evaluated(2))
        writer.close()
        return path.read_bytes()


def _value_mutant(value: Any, dice: random.Random) -> Any:
    """A record in msgpack's types with one part changed at random."""
    odd = [None, 0, -1, 2**40, 1.5, float("nan"), "x", b"x", [], {}, True, [[]]]
    if isinstance(value, dict) and value and dice.random() < 0.9:
        name = dice.choice(list(value))
        if dice.random() < 0.1:
            return {key: part for key, part in value.items() if key != name}
        return value | {name: _value_mutant(value[name], dice)}
    if isinstance(value, list) and value and dice.random() < 0.5:
        place = dice.randrange(len(value))
        return [*value[:place], _value_mutant(value[place], dice), *value[place + 1 :]]
    if isinstance(value, list) and value:
        return dice.choice((value[:-1], value * 2, value[:1]))
    if isinstance(value, msgspec.msgpack.Ext) and dice.random() < 0.7:
        data = bytearray(value.data)
        data[dice.randrange(min(len(data), 24))] = dice.randrange(256)
        return msgspec.msgpack.Ext(value.code, bytes(data[: dice.choice((None, -4, 8))]))
    return dice.choice(odd)


def run_files(dice: random.Random, folder: Path) -> None:
    """A run file with a changed byte, cell or record shows what is whole, or says in one line what is not."""
    path = folder / "a.rlplay"
    for old in folder.glob("a.rlplay*"):
        old.unlink()
    data = bytearray(_whole_run())
    kind = dice.randrange(3)
    if kind == 0:
        for _ in range(dice.randint(1, 20)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        data = data[: dice.choice((len(data), len(data), len(data) // 2, dice.randrange(len(data))))]
    path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(path)) as db:
        if kind == 1:
            table, column = dice.choice(
                (("records", "number"), ("records", "kind"), ("records", "data"), ("records", "branch"),
                 ("metrics", "value"), ("metrics", "name"), ("metrics", "number"), ("meta", "value"), ("meta", "key"))
            )  # fmt: skip
            cell = dice.choice((None, -1, 2**62, 1.5, "x", b"x", "9" * 5_000))
            db.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid % 3 = ?" if table == "records" else
                       f"UPDATE OR IGNORE {table} SET {column} = ?",
                       (cell, dice.randrange(3)) if table == "records" else (cell,))  # fmt: skip
        elif kind == 2:
            number, packed = dice.choice(db.execute("SELECT id, data FROM records").fetchall())
            content = _value_mutant(msgspec.msgpack.decode(zlib.decompress(packed)), dice)
            db.execute(
                "UPDATE records SET data = ? WHERE id = ?", (zlib.compress(msgspec.msgpack.encode(content)), number)
            )
        db.commit()
    _read(path)


def _read(path: Path) -> None:
    with contextlib.suppress(RunFileError), RunReader(path) as run:
        for read in (run.history, run.timeline, run.events, run.snapshots, run.last_id, run.detailed,
                     lambda: run.began, lambda: run.branched, lambda: list(run.metrics())):  # fmt: skip
            _fine(read)
        for number in run.updates():
            _fine(lambda number=number: _shown(run, number))
            _fine(lambda number=number: run.held_out(number))


def _shown(run: RunReader, number: int) -> None:
    update = run.load(number)
    for point in range(0, length(update) + 1, 5):
        at(update, point)
    update.pull(), update.new_logprobs(), update.latest_step("importance_ratio")
    if update.sampled is not None:
        list(rows(update))
    decoded(run.settings(number))


def _fine(read: Callable[[], Any]) -> None:
    try:
        read()
    except RunFileError as error:
        in_one_line(error)


class Kind(NamedTuple):
    """What plays a case, how many cases make the full count, and how many seconds of work one may take."""

    play: Callable[[random.Random, Path], None]
    full: int
    patience: float = 10


KINDS = {
    "run files": Kind(run_files, 5_000),
    "scenarios": Kind(scenarios, 20_000),
    "codes": Kind(codes, 100_000),
    "lines": Kind(lines, 20_000),
    "curves": Kind(lambda dice, folder: curves(dice, folder, in_one_line), 20_000),
    "keys": Kind(keys, 1_000, patience=60),  # a case is a round of a hundred
}


@contextlib.contextmanager
def _patience(seconds: float) -> Iterator[None]:
    """AssertionError once the block has used so much processor time, or waits for ten times as long."""

    def over(_signal: int, _frame: object) -> None:
        raise AssertionError(f"it takes more than {seconds} s")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds))
    before = [signal.signal(kind, over) for kind, _, _ in timers]
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for (kind, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(kind, handler)


def played(kind: str, count: int, first: int = 0) -> list[str]:
    """Play the cases from `first` on; what was wrong with those that failed."""
    play, _, patience = KINDS[kind]
    if play is lines:
        importlib.import_module("rlplay.engine.driver")  # which takes longer than a case may
    wrong = []
    folder = Path(tempfile.mkdtemp())
    try:
        for case in range(first, first + count):
            try:
                with _patience(patience):
                    play(random.Random(f"{kind} {case}"), folder)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(place.filename).name}:{place.lineno}"
                wrong.append(f"{kind} {case}: {type(error).__name__} at {where}: {str(error)[:300]}")
    finally:
        shutil.rmtree(folder)
    return wrong


def main(words: list[str]) -> int:
    """Play one kind or all, and print what was wrong."""
    os.environ["RLPLAY_HOME"] = tempfile.mkdtemp()
    kinds = [words[0]] if words else list(KINDS)
    failed = 0
    for kind in kinds:
        count = int(words[1]) if len(words) > 1 else KINDS[kind].full
        begun = time.monotonic()
        wrong = played(kind, count, int(words[2]) if len(words) > 2 else 0)
        failed += len(wrong)
        print(f"{kind}: {count:,} cases, {len(wrong)} wrong, {time.monotonic() - begun:.0f} s", flush=True)
        print("\n".join(wrong[:20]), flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
