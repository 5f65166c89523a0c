"""Reads the stream of traces that prime-rl's file monitor writes while a run trains.

`monitors/file/traces/stream/NNNNN.jsonl` has each episode as it arrives, of training and evaluation alike, and
`annotations/PRODUCER/NNNNN.jsonl` what became known of a trace later: the orchestrator says which step trained it and
with which advantages, the trainer what its pass computed (prime_rl/monitors/file/monitor.py at 048a6e2). A chunk that
is full, and the last one when the run ends, is compressed: `NNNNN.jsonl.zst` (traces/chunks.py at 551bfc3).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from rlplay.algorithms.setting_values import decoded
from rlplay.foreign.answer_rows import Row
from rlplay.foreign.files import HalfWrittenError, age, made_of
from rlplay.foreign.foreign_run import ForeignRunError, beginning, known_settings
from rlplay.foreign.json_lines import mapping
from rlplay.foreign.prime_config import configured
from rlplay.foreign.token_texts import TokenTexts
from rlplay.foreign.verifiers_traces import Branch, branches, sampled, traces_of, trained
from rlplay.trace.records import AnyRecord, Started

_TRACES = "monitors/file/traces"
_SOURCE = "prime-rl"
_STREAMS = ("trainer_logprobs", "entropies", "advantages", "is_masked")
"""The numbers of tokens that an update of a trace may bring."""
SETTLED = 60.0
"""Seconds without a new line after which nothing more is taken to come of the newest step."""
_WAITS = 64
"""Steps for which a trace may wait to be trained: prime-rl drops older ones much earlier (max_off_policy_steps)."""
_DIGITS, _NAME = 5, re.compile(r"^\d{5}\.jsonl(\.zst)?$")
"""Of a chunk."""
_LONGEST = 2**28
"""Bytes of a line, which is one episode."""


class PrimeStream:
    """The traces below the folder `path` of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._traces = path / _TRACES
        self._about = configured(path)
        self._settings = decoded(known_settings(self._about["settings"]))
        self._texts = TokenTexts(path, self._about["model"])
        self._done: int | None = None  # the last step that was read
        self._first: int | None = None  # 0 or 1, as the trainer counts
        self._forget()

    def _forget(self) -> None:
        self._read: dict[tuple[Path, int], int] = {}  # by stream and chunk, the bytes that were read
        self._arrived: dict[str, list[Branch]] = {}  # by trace
        self._early: dict[str, list[Row]] = {}  # updates of traces that have not arrived
        self._steps: dict[int, list[str]] = {}  # the traces that each step trained
        self._since: dict[str, int] = {}  # by trace, the last step that was read when it was seen first

    @staticmethod
    def is_at(folder: Path) -> bool:
        """Whether a folder has such a stream."""
        return any(folder.glob(f"{_TRACES}/stream/*.jsonl*"))

    def started(self) -> Started:
        """What the resolved configuration says of the run."""
        return beginning(_SOURCE, title=f"{_SOURCE} · {self.path.name}", **self._about)

    def place(self) -> dict[str, Any]:
        """The last step read, and whether the trainer counts from 0 or 1."""
        return {"step": self._done, "first": self._first}

    def resume(self, place: Mapping[str, Any]) -> None:
        """Go on after this step; the streams are read again, as a trace may be trained long after it has arrived."""
        self._forget()
        self._done, self._first = place.get("step"), place.get("first")

    def fresh(self) -> list[AnyRecord]:
        """The steps of which nothing more will come."""
        try:
            for record in self._new(self._traces / "stream"):
                self._arrive(record)
            for producer in sorted(path for path in self._traces.glob("annotations/*") if path.is_dir()):
                for record in self._new(producer):
                    self._learn(record)
            quiet = self._quiet()
        except HalfWrittenError:
            return []
        except ForeignRunError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, OSError) as error:
            raise ForeignRunError(f"{self._traces} cannot be read as traces of {_SOURCE} ({error})") from None
        if self._first is None and self._steps:
            self._first = min(*self._steps, 1)
        found: list[AnyRecord] = []
        for step in sorted(self._steps):
            if not (quiet or self._complete(step)):
                break
            found += self._records(step)
            self._done = step if self._done is None else max(step, self._done)
        self._drop_old()
        return found

    def _drop_old(self) -> None:
        """Forget the traces that no step has trained for long: some are filtered out, and some come for a step read."""
        done = -1 if self._done is None else self._done
        for name in (*self._arrived, *self._early):
            self._since.setdefault(name, done)
        trained = {name for names in self._steps.values() for name in names}
        for name in [name for name, since in self._since.items() if since < done - _WAITS and name not in trained]:
            self._forget_trace(name)

    def _forget_trace(self, name: str) -> list[Branch]:
        self._since.pop(name, None)
        self._early.pop(name, None)
        return self._arrived.pop(name, [])

    def _records(self, step: int) -> list[AnyRecord]:
        """The records of a step, whose traces are forgotten."""
        found = [each for name in self._steps.pop(step) for each in self._forget_trace(name) if each.mask.any()]
        number = step + (self._first == 0)
        if not found or (self._done is not None and step <= self._done):
            return []
        try:
            return made_of(number, step, sampled(number, found), trained(number, found), self._settings, self._texts)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ForeignRunError(f"{self._traces} is not of {_SOURCE}: step {step}: {error}") from None

    def _complete(self, step: int) -> bool:
        """Whether the trainer has told of all traces of a step, or tells of none and a later step was trained."""
        passed = [each.numbers.get("trainer_logprobs") is not None for each in self._branches(step)]
        told = any((self._traces / "annotations" / "trainer").glob("*.jsonl*"))
        return (all(passed) if told else step < max(self._steps)) or step + 2 < max(self._steps)

    def _branches(self, step: int) -> list[Branch]:
        return [each for name in self._steps[step] for each in self._arrived.get(name, ()) if each.mask.any()]

    def _arrive(self, record: Row) -> None:
        """Keep the traces of an episode, until a step has trained them."""
        for trace in traces_of(record):
            if (trace.get("info") or {}).get("kind") == "eval":
                continue
            self._arrived[str(trace["id"])] = branches(trace)
            for update in self._early.pop(str(trace["id"]), ()):
                self._learn(update)

    def _learn(self, update: Row) -> None:
        """Add what became known of a trace."""
        name = str(update["trace_id"])
        if name not in self._arrived:
            self._early.setdefault(name, []).append(update)
            return
        step = ((update.get("info") or {}).get("train") or {}).get("trained_at_step")
        if isinstance(step, int) and name not in self._steps.setdefault(step, []):
            self._steps[step].append(name)
        paths = self._arrived[name]
        for each in update.get("branches") or []:
            for stream in _STREAMS:
                if each.get(stream) and 0 <= each["index"] < len(paths):
                    paths[each["index"]].add(stream, each[stream])

    def _quiet(self) -> bool:
        files = [*self._traces.glob("stream/*.jsonl*"), *self._traces.glob("annotations/*/*.jsonl*")]
        return bool(files) and min(map(age, files)) > SETTLED

    def _new(self, directory: Path) -> Iterator[Row]:
        """The records of a stream that were not read yet."""
        for number in sorted(
            {int(path.name[:_DIGITS]) for path in directory.glob("*.jsonl*") if _NAME.match(path.name)}
        ):
            at = self._read.get((directory, number), 0)
            with _opened(directory / f"{number:0{_DIGITS}}.jsonl") as file:
                _skip(file, at)
                while (line := file.readline(_LONGEST)).endswith(b"\n"):
                    at += len(line)
                    self._read[directory, number] = at
                    yield mapping(line)
                if len(line) == _LONGEST:
                    raise ValueError(f"a line has more than {_LONGEST // 2**20} MiB")


def _opened(path: Path) -> BinaryIO:
    """A chunk, whether it is compressed yet or not. Raises ForeignRunError without what decompresses it."""
    packed = path.with_name(path.name + ".zst")
    if path.is_file():
        return path.open("rb")
    if not packed.is_file():
        raise HalfWrittenError
    try:
        import pyarrow
    except ImportError:
        raise ForeignRunError(f'{packed} needs pyarrow: pip install "rlplay[parquet]"') from None
    return io.BufferedReader(pyarrow.CompressedInputStream(str(packed), "zstd"), 2**20)


def _skip(file: BinaryIO, count: int) -> None:
    """Go on after so many bytes of the content."""
    if file.seekable():
        file.seek(count)
        return
    while count > 0 and (piece := file.read(min(count, 2**20))):
        count -= len(piece)
