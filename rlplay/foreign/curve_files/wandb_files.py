"""Reads the file that W&B keeps of a run, `wandb/offline-run-…/run-ID.wandb`, without wandb.

It is a LevelDB log (wandb/core/internal/transactionlog, github.com/golang/leveldb/record): ":W&B", two bytes of magic
and a version, then blocks of 32 KiB with chunks: a CRC-32 of type and data, a length of two bytes, a type (whole,
first, middle, last), the data. Joined chunks are a `Record` message (wandb_internal.proto): history 2, config 5, run
17; in a history item 1 and step 2; in an item key 1, nested_key 2, value_json 16; in a run run_id 1, project 3, config
4, display_name 8.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlplay.foreign.curve_files.rows import MEDIA, Clock, Row, model_in, parsed
from rlplay.foreign.curve_files.wire import fields
from rlplay.foreign.foreign_run import ForeignRunError

PATTERN = "run-*.wandb"
_MAGIC, _BEGIN = b":W&B", 7
_BLOCK = 2**15
_CHUNK = struct.Struct("<IHB")
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_LARGEST = 2**24
"""Bytes of a record that may hold numbers; larger ones hold tables and console output."""


class WandbFile:
    """The file of one run of W&B."""

    source = "W&B"
    goes_back = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = _BEGIN
        self._config: dict[str, Any] = {}
        self._name = ""
        self._clock = Clock()
        self._rows: list[Row] = []

    def about(self) -> dict[str, Any]:
        """The configuration of the run and its name."""
        self._rows += self._look()
        return {"settings": self._config, "model": model_in(self._config), "title": self._name}

    def fresh(self) -> list[Row]:
        """The history that came since the last call."""
        found, self._rows = self._rows + self._look(), []
        return found

    def _look(self) -> list[Row]:
        try:
            return [row for record in self._records() for row in self._of_record(record)]
        except ValueError as error:
            raise ForeignRunError(f"{self.path} is damaged ({error}); copy it again") from None

    def _records(self) -> Iterator[bytes]:
        """The whole records from here on. Raises ValueError if one is damaged."""
        with self.path.open("rb") as file:
            if not _MAGIC.startswith((head := file.read(_BEGIN))[:4]):
                raise ValueError("it does not begin as a file of W&B")
            file.seek(self._offset)
            place, parts, size = self._offset, list[bytes](), 0
            while len(head) == _BEGIN:
                left = _BLOCK - place % _BLOCK
                if left < _CHUNK.size:  # too little room for a chunk: zeros
                    file.seek(left, 1)
                    place += left
                    continue
                head = file.read(_CHUNK.size)
                if len(head) < _CHUNK.size:
                    return
                check, length, kind = _CHUNK.unpack(head)
                if kind == 0 and not length:  # room that was set aside and is not written yet
                    return
                data = file.read(length)
                if len(data) < length:
                    return
                if kind not in (_WHOLE, _FIRST, _MIDDLE, _LAST) or zlib.crc32(head[6:] + data) != check:
                    raise ValueError(f"at byte {place} is no record")
                place += _CHUNK.size + length
                if kind in (_WHOLE, _FIRST):
                    parts, size = [], 0
                size += length
                if size <= _LARGEST:
                    parts.append(data)
                if kind in (_WHOLE, _LAST):
                    self._offset = place
                    if size <= _LARGEST:
                        yield b"".join(parts)

    def _of_record(self, record: bytes) -> Iterator[Row]:
        for field, value in fields(record):
            if not isinstance(value, bytes):
                continue
            if field == 2:
                logged, call = _history(value)
                yield from self._clock.row(logged, call)
            elif field == 5:
                self._configure(value)
            elif field == 17:
                known = [(number, each) for number, each in fields(value) if isinstance(each, bytes)]
                names = {number: each.decode(errors="replace") for number, each in known if number in (1, 3, 8)}
                self._name = " · ".join(names[number] for number in (3, 8) if names.get(number)) or names.get(1, "")
                for number, each in known:
                    if number == 4:
                        self._configure(each)

    def _configure(self, config: bytes) -> None:
        for field, value in fields(config):
            if field == 1 and isinstance(value, bytes):
                name, known = _item(value)
                if len(name) == 1:
                    self._config[name[0]] = known


def _history(history: bytes) -> tuple[dict[str, Any], int]:
    """What one call of `wandb.log` logged, and the number of the call."""
    items, call = list[tuple[list[str], Any]](), 0
    for field, value in fields(history):
        if field == 1 and isinstance(value, bytes):
            items.append(_item(value))
        elif field == 2 and isinstance(value, bytes):
            call = next((number for key, number in fields(value) if key == 1 and isinstance(number, int)), 0)
    media = {tuple(names[:-1]) for names, _ in items if names[-1:] == [MEDIA]}
    return {"/".join(names): value for names, value in items if tuple(names[:-1]) not in media}, call


def _item(item: bytes) -> tuple[list[str], Any]:
    """The name of an item, in parts, and its value; None for what is no JSON."""
    names, value = list[str](), None
    for field, content in fields(item):
        if field in (1, 2) and isinstance(content, bytes) and content:
            names.append(content.decode(errors="replace"))
        elif field == 16 and isinstance(content, bytes):
            try:
                value = parsed(content)
            except ValueError:
                value = None
    return names, value
