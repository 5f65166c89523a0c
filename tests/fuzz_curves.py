"""Seeded mutants of files of curves, their checksums mended in most of them, so that what is inside is read."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from rlplay.foreign.curve_files.curve_run import CurveRun
from rlplay.foreign.curve_files.event_files import masked_crc
from rlplay.foreign.curve_files.formats import curve_log
from rlplay.foreign.foreign_run import ForeignRunError

_CURVES = Path(__file__).parent / "foreign" / "curves"
_STATE = b'{"log_history": [{"step": 1, "epoch": 0.5, "loss": 2.0}, {"step": 2, "eval_loss": NaN}]}'
_TABLE = b'step,loss,"a, b"\n1,2,3\n2,3,nan\n3,1e400,x\n'


@cache
def _files() -> dict[str, bytes]:
    events = {f"events.out.tfevents.{n}.x": _CURVES / name for n, name in enumerate(("tensorboardX", "tensorboard"))}
    return {name: next(folder.iterdir()).read_bytes() for name, folder in events.items()} | {
        "run-x.wandb": (_CURVES / "wandb" / "run-abcd1234.wandb").read_bytes(),
        "project.db": gzip.decompress((_CURVES / "project.db.gz").read_bytes()),
        "verl.jsonl": (_CURVES / "verl.jsonl").read_bytes(),
        "trainer_state.json": _STATE,
        "curves.csv": _TABLE,
    }


def curves(dice: random.Random, folder: Path, fine: Callable[[BaseException], None]) -> None:
    """A file of curves with changed bytes gives records, or one line that `fine` takes."""
    for old in folder.iterdir():
        old.unlink()
    name = dice.choice(list(_files()))
    data = bytearray(_files()[name])
    for _ in range(dice.choice((1, 1, 2, 5, 20))):
        at, kind = dice.randrange(len(data)), dice.randrange(4)
        if kind < 2:
            data[at] = dice.randrange(256)
        elif kind == 2 and len(data) > 10:
            del data[at : at + dice.randrange(1, 9)]
        else:
            data[at:at] = dice.randbytes(dice.randrange(1, 9))
    if dice.randrange(10) < 7:
        _mended(name, data)
    (folder / name).write_bytes(data)
    try:
        log = curve_log(folder / name / "second" if name == "project.db" else folder / name)
        if log is not None:
            run = CurveRun(log)
            run.started()
            run.fresh()
    except ForeignRunError as error:
        fine(error)


def _mended(name: str, data: bytearray) -> None:
    """Write the checksums of the records anew, as far as their lengths lead."""
    if "tfevents" in name:
        place = 0
        while (
            place + 16 <= len(data) and (length := struct.unpack_from("<Q", data, place)[0]) <= len(data) - place - 16
        ):
            heads = [bytes(data[place : place + 8]), bytes(data[place + 12 : place + 12 + length])]
            for at, check in zip((place + 8, place + 12 + length), masked_crc(heads), strict=True):
                struct.pack_into("<I", data, at, check)
            place += 16 + length
    elif name.endswith(".wandb"):
        place = 7
        while place + 7 <= len(data) and (end := place + 7 + struct.unpack_from("<H", data, place + 4)[0]) <= len(data):
            struct.pack_into("<I", data, place, zlib.crc32(data[place + 6 : end]))
            place = end
