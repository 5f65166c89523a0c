"""The layout of a recording: a folder with one append-only file per process of the trainer.

`part-00000.rlpart` begins with MAGIC. After it stand frames. A frame is three little-endian numbers of 4 bytes (the
payload's length, its CRC-32, the CRC-32 of these two numbers) and the payload: zlib-compressed msgpack of one of the
structs below, as a map with `type`. Arrays are extension type 1: one byte with the length of a header, the header
(msgpack of dtype and shape), the bytes in C order.
Nothing is ever rewritten, so a copy that was taken at any moment is a valid recording; a last frame that is cut short
is left out. Fields that a trainer does not know are None, or not there.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Any

import msgspec

from rlplay.trace.codec import Codec
from rlplay.trace.inflate import Budget
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import Array, CorrectionRule

MAGIC = b"RLPART\x01\n"
"""The first bytes of a part; the seventh is the version of the format."""
SUFFIX = ".rlpart"
LIMIT = 2**28
"""The most bytes of a frame's content; 512 answers of 1,500 tokens have about a fifth of that."""
_HEAD = struct.Struct("<III")


class Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str.lower, omit_defaults=True):
    """Base of all frames; `update` counts from 1."""

    update: int = 0


class Begun(Frame, frozen=True, kw_only=True):
    """The first frame of a part: which run this is."""

    run_id: str  # the same in all parts
    rank: int
    ranks: int
    source: str  # the trainer, such as "TRL 1.16.0 GRPOTrainer"
    title: str
    settings: SomeSettings  # under rlplay's names, which are TRL's
    model: str
    parameters: int
    seed: int
    device: str
    dtype: str
    versions: dict[str, str]
    ends: dict[int, str] = {}  # the tokens that end an answer, with their text; empty: unknown


class Rollouts(Frame, frozen=True, kw_only=True):
    """Answers, their rewards and their advantages. G prompts, N answers, T tokens of answers, flat in order."""

    prompts: list[str]  # [G] the user's turn, for headings
    columns: list[dict[str, Any]]  # [G] other columns of the dataset
    group: Array  # int32 [N] index of the prompt
    lengths: Array  # int64 [N] in tokens
    texts: list[str]  # [T]
    rewards: dict[str, Array]  # float64 [N] by reward function; NaN: it gave none
    reward_weights: dict[str, float]
    temperature: float | None = None
    group_ids: Array | None = None  # int64 [G], unique over all processes; None: no prompt is in two parts
    group_mean: Array | None = None  # float64 [G] of the reward over all processes; None: every group is whole
    group_std: Array | None = None  # float64 [G], ddof = 1
    prompt_ids: Array | None = None  # int32, flat
    prompt_lengths: Array | None = None  # int64 [G]
    prompt_texts: list[str] | None = None  # one for each of prompt_ids
    token_ids: Array | None = None  # int32 [T]
    mask: Array | None = None  # uint8 [T]; 0: written by an environment or a tool
    truncated: Array | None = None  # uint8 [N]
    roles: list[str] | None = None  # [N] "chosen" or "rejected" where answers are compared
    old_logprobs: Array | None = None  # float32 [T] under the policy before its first step on them
    sampling_logprobs: Array | None = None  # float32 [T] as the sampler computed them, such as vLLM
    entropy: Array | None = None  # float32 [T] nats
    ref_logprobs: Array | None = None  # float32 [T] under the frozen reference
    advantages: Array | None = None  # float32 [T]
    values: Array | None = None  # float32 [T] of a value head, or a reward model's score at an answer's last token
    correction: Array | None = None  # float32 [T] factor of each token's loss, as in `Credited`
    correction_rule: CorrectionRule | None = None  # how it was computed
    versions: Array | None = None  # int32 [N] updates that the weights had had which sampled the answer
    teacher_logprobs: Array | None = None  # float32 [T] under the teacher that the policy is distilled from


class Step(Frame, frozen=True, kw_only=True):
    """One optimizer step; token arrays cover the answers `rows`, in that order, flat."""

    step: int  # from 0 within the update
    steps: int
    rows: Array  # int32 [R]
    logprobs: Array  # float32 before this step
    metrics: dict[str, float]  # of this process; readers take the mean
    importance_ratio: Array | None = None
    clip_state: Array | None = None  # int8: +1 clipped high, −1 clipped low, 0 inside
    dloss_dlogp: Array | None = None  # float32, the derivative of the loss of all processes
    tokens: int | None = None  # of this process in the loss; readers add them up
    values: Array | None = None  # float32, as in Rollouts, now


class Ended(Frame, frozen=True, kw_only=True):
    """The update is over; metrics under TRL's names."""

    metrics: dict[str, float]
    seconds: float
    trainer_steps: tuple[int, int] | None = None  # the trainer's own numbers of its first and last optimizer step


class Heldout(Frame, frozen=True, kw_only=True):
    """Numbers on held-out prompts after `update`; names begin with eval_."""

    metrics: dict[str, float]
    prompts: list[str]
    completions: list[str]
    rewards: Array  # float64 [N]


class Setting(Frame, frozen=True, kw_only=True):
    """A setting changed; it holds from the start of `update`."""

    name: str
    value: Any
    previous: Any


class Remark(Frame, frozen=True, kw_only=True):
    """Something to know about the recording, such as what it lacks from `update` on; of the first process."""

    text: str  # one line


AnyFrame = Begun | Rollouts | Step | Ended | Heldout | Setting | Remark
_FRAMES: Codec[AnyFrame] = Codec(AnyFrame)


class RecordingError(ValueError):
    """A recording that cannot be read; one line: what, where, what to do."""


def part(folder: Path, rank: int) -> Path:
    """The file that the process `rank` writes."""
    return folder / f"part-{rank:05d}{SUFFIX}"


def parts(folder: Path) -> list[Path]:
    """The parts of a recording, by rank."""
    return sorted(folder.glob("part-*" + SUFFIX))


def free(wanted: Path) -> Path:
    """`wanted`, or with a number if a run was recorded there before."""
    path, count = wanted, 1
    while os.path.isfile(path) or parts(path):  # neither raises if the place cannot be read
        count += 1
        path = wanted.with_name(f"{wanted.name}-{count}")
    return path


def pack(frame: AnyFrame) -> bytes:
    """A frame as it is stored."""
    content = _FRAMES.encode(frame)
    if len(content) > LIMIT:
        raise ValueError(
            f"update {frame.update} takes {len(content)} bytes, more than {LIMIT}; record fewer completions"
        )
    payload = zlib.compress(content, 1)
    return _head(len(payload), zlib.crc32(payload)) + payload


def _head(length: int, check: int) -> bytes:
    begin = struct.pack("<II", length, check)
    return begin + struct.pack("<I", zlib.crc32(begin))


def read(path: Path, offset: int = 0) -> list[tuple[int, AnyFrame]]:
    """All whole frames from `offset` on, as `read_some`."""
    return read_some(path, offset)[0]


def read_some(path: Path, offset: int = 0, most: int = -1) -> tuple[list[tuple[int, AnyFrame]], bool]:
    """The whole frames from `offset` on, each with the offset at which it ends; and whether there is more to read.

    Of a long file those in the next `most` bytes, at least one. Raises RecordingError if the file is no part, of a
    newer format or damaged; OSError if it cannot be read.
    """
    if not path.is_file():  # a pipe or a device never ends
        raise RecordingError(f"{path} is no file; copy it again from where it was recorded")
    with path.open("rb") as file:
        if not _begins(file.read(len(MAGIC)), path):
            return [], False
        start = max(offset, len(MAGIC))
        file.seek(start)
        data = file.read(most)
    more = len(data) == most
    found, budget = [], Budget(len(data))
    place = 0
    while len(data) - place >= _HEAD.size:
        length, check, _ = _HEAD.unpack_from(data, place)
        begin, end = place + _HEAD.size, place + _HEAD.size + length
        whole = data[place:begin] == _head(length, check)
        if not whole or (end <= len(data) and zlib.crc32(data[begin:end]) != check):
            raise RecordingError(f"{path} is damaged at byte {start + place}; copy it again from where it was recorded")
        if end > len(data):
            break
        found.append((start + end, _decoded(data[begin:end], path, start + place, budget)))
        place = end
    return read_some(path, offset, 2 * most) if more and not found else (found, more)


def _begins(magic: bytes, path: Path) -> bool:
    """Whether a part's first bytes are all there; raises RecordingError if they are not those of a part."""
    version = len(MAGIC) - 2
    if magic[:version] == MAGIC[:version] and magic[-1:] == MAGIC[-1:] and magic != MAGIC:
        raise RecordingError(
            f"{path} has format {magic[version]}, this rlplay reads format {MAGIC[version]}; upgrade rlplay"
        )
    if not MAGIC.startswith(magic):
        raise RecordingError(f"{path} is not part of a recording; copy it again from where it was recorded")
    return len(magic) == len(MAGIC)


def _decoded(payload: bytes, path: Path, offset: int, budget: Budget) -> AnyFrame:
    try:
        return _FRAMES.decode(budget.inflated(payload, LIMIT))
    except (zlib.error, msgspec.MsgspecError, ValueError, IndexError, TypeError, RecursionError) as error:
        raise RecordingError(f"{path} is damaged at byte {offset} ({error}); copy it again") from None
