"""Parts of a recording: cut anywhere, damaged anywhere, of another version."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest

from rlplay.record.format import LIMIT, MAGIC, RecordingError, pack, part, read
from tests.record.batches import answers, frames_of, record


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A part with the frames of one small update."""
    record(tmp_path / "run", [answers(1, 2, 2, 1)], [])
    return part(tmp_path / "run", 0)


def test_a_part_that_is_cut_at_any_byte_gives_its_whole_frames(whole: Path, tmp_path: Path) -> None:
    data, frames, copy = whole.read_bytes(), read(whole), tmp_path / "copy.rlpart"
    assert len(frames) == 4
    for size in range(len(data) + 1):
        copy.write_bytes(data[:size])
        assert [end for end, _ in read(copy)] == [end for end, _ in frames if end <= size]


def test_reading_goes_on_at_an_offset(whole: Path) -> None:
    frames = read(whole)
    for number, (end, _) in enumerate(frames, 1):
        assert [e for e, _ in read(whole, end)] == [e for e, _ in frames[number:]]


def test_a_flipped_byte_is_reported_with_its_file_and_its_frame(whole: Path) -> None:
    data = whole.read_bytes()
    begins = [len(MAGIC), *(end for end, _ in read(whole))]
    for place in range(len(data)):
        whole.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        with pytest.raises(RecordingError) as caught:
            read(whole)
        said = str(caught.value)
        assert said.startswith(str(whole))
        assert "\n" not in said
        if place >= len(MAGIC):
            assert f"damaged at byte {max(begin for begin in begins if begin <= place)};" in said


def test_a_newer_version_is_refused(whole: Path) -> None:
    data = whole.read_bytes()
    whole.write_bytes(data[:6] + b"\x02" + data[7:])
    with pytest.raises(RecordingError, match="has format 2, this rlplay reads format 1; upgrade rlplay"):
        read(whole)


def test_a_frame_that_an_intact_checksum_hides_is_reported(whole: Path) -> None:
    class Other:
        update = 0

    with pytest.raises(TypeError):
        pack(Other())  # type: ignore[arg-type]
    whole.write_bytes(MAGIC + _framed(b"no zlib"))
    with pytest.raises(RecordingError, match="damaged at byte 8"):
        read(whole)


def test_a_few_bytes_that_stand_for_gigabytes_are_refused_before_they_are_there(whole: Path) -> None:
    whole.write_bytes(MAGIC + _framed(zlib.compress(bytes(LIMIT + 1), 1)))
    tracemalloc.start()
    with pytest.raises(RecordingError, match="holds more than"):
        read(whole)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * LIMIT


def _framed(payload: bytes) -> bytes:
    import struct
    import zlib

    head = struct.pack("<II", len(payload), zlib.crc32(payload))
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def test_what_is_recorded_is_on_disk_without_close(tmp_path: Path) -> None:
    program = (
        "import os, sys; from rlplay.record import Recorder; r = Recorder(sys.argv[1]); r.begin('T', {}); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "run")], check=False)
    assert done.returncode == 9
    assert len(read(part(tmp_path / "run", 0))) == 1


def test_the_recorder_loads_no_torch() -> None:
    program = "import sys, rlplay.record; sys.exit(any(name in sys.modules for name in ('torch', 'transformers')))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_bytes_are_the_documented_layout(tmp_path: Path) -> None:
    record(tmp_path / "run", [answers(1, 1, 1, 1)], [])
    data = frames_of(tmp_path / "run")
    _, begun = read(part(tmp_path / "run", 0))[0]
    assert data.startswith(MAGIC + pack(begun))
