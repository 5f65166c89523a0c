"""Writes `tests/foreign/curves` with the libraries that write such files for users.

`python -m tests.foreign.write_curves` writes each file whose library is installed; those that are committed are of
tensorboardX 2.6.5, tensorboard 2.21.0, wandb 0.31.0, trackio 0.43.0 and the FileLogger of verl 0.9.1.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

HERE = Path(__file__).parent / "curves"
STEPS = 6
OPTIONS = {"learning_rate": 1e-6, "num_generations": 8, "model_name_or_path": "org/model", "temperature": 0.7}


def logged() -> Iterator[tuple[int, dict[str, float]]]:
    """What a trainer logs in each step."""
    for step in range(1, STEPS + 1):
        yield step, {"train/reward": step / 8, "train/loss": -step / 64, "train/grad_norm": 1 / step}


def tensorboardx(out: Path) -> None:
    """Scalars as `simple_value`, as torch and tensorboardX write them, and the options as transformers does."""
    from tensorboardX import SummaryWriter

    with SummaryWriter(str(out / "tensorboardX")) as writer:
        writer.add_text("args", json.dumps(OPTIONS))
        for step, found in logged():
            for name, value in found.items():
                writer.add_scalar(name, value, step)
        writer.add_scalar("eval/reward", 0.5, 3)
        writer.add_scalar("train/kl", math.nan, STEPS)


def tensorboard(out: Path) -> None:
    """Scalars as tensors, as TensorFlow and JAX write them."""
    import numpy as np
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.scalar.metadata import create_summary_metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util.tensor_util import make_tensor_proto

    writer = EventFileWriter(str(out / "tensorboard"))
    for step, found in logged():
        for name, value in found.items():
            about = create_summary_metadata(display_name="", description="")
            tensor = make_tensor_proto(np.float32(value))
            summary = Summary(value=[Summary.Value(tag=name, tensor=tensor, metadata=about)])
            writer.add_event(Event(step=step, summary=summary))
    writer.close()


def wandb(out: Path) -> None:
    """A run offline; the trainer's step is a number beside the others, as transformers logs it."""
    folder = Path(mkdtemp())
    os.environ.update(WANDB_MODE="offline", WANDB_DIR=str(folder), WANDB_SILENT="true")
    import wandb as library

    quiet = library.Settings(x_disable_stats=True, x_disable_meta=True, console="off")
    run = library.init(project="project", name="night", config=OPTIONS, settings=quiet)
    for step, found in logged():
        if step == 4:
            run.log({"note": "a text", "completions": library.Table(columns=["a"], data=[["x"]])})
        run.log({**found, "train/global_step": step, "nested": {"inner": step}, "train/kl": math.nan})
    run.finish()
    found = next(folder.glob("wandb/offline-run-*/run-*.wandb"))
    (out / "wandb").mkdir(exist_ok=True)
    shutil.copy(found, out / "wandb" / "run-abcd1234.wandb")


def trackio(out: Path) -> None:
    """Two runs in one project; packed, because most of the database is empty pages."""
    folder = Path(mkdtemp())
    os.environ["TRACKIO_DIR"] = str(folder)
    import trackio as library

    for name in ("first", "second"):
        library.init(project="project", name=name, config=OPTIONS)
        for step, found in logged():
            library.log({**found, "train/global_step": step, "train/kl": math.nan})
        library.finish()
    whole = folder / "whole.db"
    with sqlite3.connect(folder / "project.db") as database:
        database.execute("VACUUM INTO ?", (str(whole),))
    (out / "project.db.gz").write_bytes(gzip.compress(whole.read_bytes(), mtime=0))


def verl(out: Path) -> None:
    """What `trainer.logger=file` writes; its JSON has null for NaN."""
    os.environ["VERL_FILE_LOGGER_PATH"] = str(out / "verl.jsonl")
    from verl.utils.tracking import FileLogger

    logger = FileLogger("project", "night")
    logger.log({"val-core/gsm8k/acc/mean@1": 0.25}, 0)
    for step in range(1, STEPS + 1):
        metrics = {
            "critic/score/mean": step / 8, "critic/rewards/mean": step / 8, "actor/entropy": 1 / step,
            "actor/pg_clipfrac": step / 64, "response_length/mean": 100.0 + step, "timing_s/step": 2.0,
            "actor/grad_norm": math.nan if step == STEPS else 1.0,
        }  # fmt: skip
        logger.log(metrics, step)
    logger.finish()


def write(out: Path) -> None:
    """Write all files whose library there is."""
    out.mkdir(parents=True, exist_ok=True)
    writers: tuple[Callable[[Path], None], ...] = (tensorboardx, tensorboard, wandb, trackio, verl)
    for each in writers:
        try:
            each(out)
        except ImportError as error:
            print(f"{each.__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
