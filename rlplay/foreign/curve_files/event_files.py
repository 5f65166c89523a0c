"""Reads TensorBoard's event files: records with a length and checksums around `Event` messages.

A record is a length (8 bytes, little-endian), the masked CRC-32C of these bytes, the data, and the masked CRC-32C of
the data (tensorflow/tsl/lib/io/record_writer.h). Of an `Event` (tensorboard/compat/proto/event.proto): step 2, summary
5; of a `Summary` (summary.proto): value 1, in it tag 1, simple_value 2, tensor 8, metadata 9; of a `TensorProto`
(tensor.proto): dtype 1, tensor_content 4, float_val 5, double_val 6.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rlplay.foreign.curve_files.rows import LAST_STEP, Row, Scalars, model_in
from rlplay.foreign.curve_files.wire import fields, signed
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.trace.records import Array

PATTERN = "events.out.tfevents.*"
LARGEST = 2**16
"""Bytes of an event that may hold a number; larger ones hold pictures and texts."""
_TEXTS = ("args/text_summary", "config/text_summary")
"""Where transformers writes the options of the trainer (TensorBoardCallback)."""
_AT_ONCE = 50_000
_HEAD = struct.Struct("<QI")
_WRITTEN = re.compile(r"tfevents\.(\d+)")
_SIZES = {1: "<f4", 2: "<f8"}  # DT_FLOAT, DT_DOUBLE


class EventFiles:
    """The event files of one run, in the order in which they were begun: a run that is resumed begins another."""

    source = "TensorBoard"
    goes_back = True

    def __init__(self, path: Path) -> None:
        """The run whose event files are in the folder `path`, or are this one file."""
        self.path = path
        self._read: dict[Path, int] = {}
        self._options: dict[str, Any] = {}
        self._rows: list[Row] = []

    def about(self) -> dict[str, Any]:
        """The options of the trainer, where transformers has written them, and the name of its output folder."""
        self._rows += self._look()
        # Where transformers has its event files, the folder is named after the host and the time.
        title = self.path.parent.parent.name if self.path.parent.name == "runs" else ""
        return {"settings": self._options, "model": model_in(self._options), "title": title}

    def fresh(self) -> list[Row]:
        """The scalars that came since the last call."""
        found, self._rows = self._rows + self._look(), []
        return found

    def _look(self) -> list[Row]:
        return [row for path in in_order(self.path) for row in self._of_file(path)]

    def _of_file(self, path: Path) -> Iterator[Row]:
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            try:
                for events in _events(file):
                    for event in events:
                        if (row := self._row(event)) is not None:
                            yield row
                    self._read[path] = file.tell()
            except (ValueError, struct.error) as error:
                raise ForeignRunError(f"{path} is damaged ({error}); copy it again") from None

    def _row(self, event: bytes) -> Row | None:
        step, scalars = 0, Scalars()
        for field, value in fields(event):
            if field == 2 and isinstance(value, int):
                step = signed(value)
            elif field == 5 and isinstance(value, bytes):
                for number, summary in fields(value):
                    if number == 1 and isinstance(summary, bytes):
                        self._take(summary, scalars)
        return Row(step, scalars) if scalars and 0 <= step <= LAST_STEP else None

    def _take(self, summary: bytes, scalars: Scalars) -> None:
        """Add one value of a summary, if it is a number."""
        tag, number, tensor = "", None, b""
        for field, value in fields(summary):
            if field == 1 and isinstance(value, bytes):
                tag = value.decode(errors="replace")
            elif field == 2 and isinstance(value, bytes) and len(value) == 4:
                number = struct.unpack("<f", value)[0]
            elif field == 8 and isinstance(value, bytes):
                tensor = value
        if number is None and tensor:
            number = self._of_tensor(tag, tensor)
        if tag and number is not None:
            scalars[tag] = number

    def _of_tensor(self, tag: str, tensor: bytes) -> float | None:
        """The number in a tensor without dimensions; None if it holds something else."""
        kind, content = 0, b""
        for field, value in fields(tensor):
            if field == 1 and isinstance(value, int):
                kind = value
            elif isinstance(value, bytes) and field in (4, 5, 6):
                content = value
            elif field == 8 and isinstance(value, bytes) and tag in _TEXTS:
                self._take_options(value)
        if kind not in _SIZES or len(content) != np.dtype(_SIZES[kind]).itemsize:
            return None
        return float(np.frombuffer(content, _SIZES[kind])[0])

    def _take_options(self, text: bytes) -> None:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(found, dict):
            self._options = found


def in_order(path: Path) -> list[Path]:
    """The event files of a run by the time in their names; a file itself."""
    if path.is_file():
        return [path]
    found = [each for each in path.glob(PATTERN) if each.is_file()]
    return sorted(found, key=lambda each: (begun(each), each.name))


def begun(path: Path) -> int:
    """When the file was begun, in seconds, as its name says; 0 if it does not."""
    found = _WRITTEN.search(path.name)
    return int(found[1][:18]) if found else 0


def is_event_file(path: Path) -> bool:
    """Whether the file's name is that of an event file."""
    return "tfevents" in path.name


def _events(file: BinaryIO) -> Iterator[list[bytes]]:
    """The data of the whole records from here on, checked, many at a time; the file stands behind the last of them.

    Raises ValueError if a record is damaged.
    """
    data: list[bytes] = []
    checks: list[int] = []
    heads: list[bytes] = []
    end = file.tell()
    size = file.seek(0, 2)
    file.seek(end)
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        length, check = _HEAD.unpack(head)
        if length > size - end - _HEAD.size - 4:
            if masked_crc([head[:8]])[0] != check:
                raise ValueError(f"at byte {end} is no record")
            break
        heads.append(head)
        if length <= LARGEST:
            data.append(file.read(length))
            checks.append(int.from_bytes(file.read(4), "little"))
        else:
            file.seek(length + 4, 1)
        end += _HEAD.size + length + 4
        if len(heads) == _AT_ONCE:
            _check(heads, data, checks)
            yield data
            data, checks, heads = [], [], []
            file.seek(end)
    file.seek(end)
    _check(heads, data, checks)
    yield data


def _check(heads: list[bytes], data: list[bytes], checks: list[int]) -> None:
    wanted = [int.from_bytes(head[8:], "little") for head in heads]
    if masked_crc([head[:8] for head in heads]) != wanted or masked_crc(data) != checks:
        raise ValueError("a checksum does not fit")


def _tables() -> Array:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1)
    return table


_TABLE = _tables()


def masked_crc(records: list[bytes]) -> list[int]:
    """The masked CRC-32C of each record, computed for all of one length at once."""
    out = [0] * len(records)
    by_length: dict[int, list[int]] = {}
    for place, record in enumerate(records):
        by_length.setdefault(len(record), []).append(place)
    for length, places in by_length.items():
        columns = np.frombuffer(b"".join(records[place] for place in places), np.uint8).reshape(len(places), length).T
        crc = np.full(len(places), 0xFFFFFFFF, dtype=np.uint32)
        for column in np.ascontiguousarray(columns):
            crc = _TABLE[(crc ^ column) & 255] ^ (crc >> 8)
        crc ^= np.uint32(0xFFFFFFFF)
        masked = ((crc >> 15) | (crc << 17)) + np.uint32(0xA282EAD8)
        for place, value in zip(places, masked.tolist(), strict=True):
            out[place] = value
    return out
