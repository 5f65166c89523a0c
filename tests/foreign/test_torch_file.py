"""Files of torch.save and pickle, read without either: as torch reads them, and nothing else."""

from __future__ import annotations

import collections
import enum
import io
import os
import pickle
import random
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.foreign.pickled import Made
from rlplay.foreign.torch_file import pickle_file, torch_file


@dataclass
class Span:
    version: str


class Status(enum.Enum):
    DONE = "done"


class Outer:
    class Inner(enum.Enum):
        CUT = "cut"


def plain(seed: int) -> dict[str, Any]:
    """A made-up dump: numbers of every width, texts, containers, tensors, arrays."""
    made = random.Random(seed)
    torch.manual_seed(seed)
    row = [made.choice((0, 1, 255, 256, 65_535, 65_536, 151_935, -1, -(2**31), 2**31, -(2**63))) for _ in range(700)]
    shared = {"role": "user", "content": "hé 😀\n"}
    return {
        "ids": row, "floats": [made.gauss(0, 1) for _ in range(500)] + [float("-inf")], "mask": [1] * 300 + [0],
        "text": "a" * 300, "none": None, "flags": [True, False], "shared": [shared, shared], "empty": [[], {}, ()],
        "nested": {"a": {"b": (1, 2, 3, 4, "x")}}, "bytes": b"\x00\xff", "set": {1, 2}, "frozen": frozenset("ab"),
        "ordered": collections.OrderedDict(x=1), "scalar": np.float32(2.5), "whole": np.int64(7),
        "array": np.arange(6, dtype=np.int32).reshape(2, 3), "columns": np.asfortranarray(np.eye(3)[:, :2]),
        "size": torch.Size([2, 3]),
    }  # fmt: skip


def tensors() -> dict[str, torch.Tensor]:
    whole = torch.randn(20)
    return {
        "view": whole[3:9:2], "other": whole[10:], "matrix": torch.randn(3, 4).T, "long": torch.arange(5),
        "bool": torch.tensor([True, False]), "half": torch.randn(3, dtype=torch.float16), "scalar": torch.tensor(1.5),
        "bfloat16": torch.randn(2, 3).to(torch.bfloat16), "empty": torch.zeros(0, 4),
        "wide": torch.ones(2).expand(3, 2),
        "double": torch.randn(2, dtype=torch.float64), "bytes": torch.arange(3, dtype=torch.uint8),
    }  # fmt: skip


def same(found: Any, expected: Any) -> bool:
    """Whether what was read is what was written; a Size is a list."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, np.ndarray | np.generic):
        return np.array_equal(found, expected) and np.asarray(found).shape == expected.shape
    return found == (list(expected) if isinstance(expected, torch.Size) else expected)


@pytest.mark.parametrize("seed", range(3))
def test_what_torch_saves_comes_out_equal(seed: int, tmp_path: Path) -> None:
    written = plain(seed) | {"tensors": tensors()}
    torch.save(written, tmp_path / "a.pt")
    found = torch_file(tmp_path / "a.pt", ())
    for name, tensor in written.pop("tensors").items():
        expected = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
        np.testing.assert_array_equal(found["tensors"][name], expected, err_msg=name)
    assert same(found, written)
    assert found["shared"][0] is found["shared"][1]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_what_pickle_dumps_comes_out_equal(protocol: int, tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(plain(0), protocol))
    assert same(pickle_file(tmp_path / "a.pkl", ()), plain(0))


@pytest.mark.parametrize("protocol", [2, 4])
def test_objects_of_the_trainer_are_data(protocol: int, tmp_path: Path) -> None:
    written = {"span": Span("7"), "status": Status.DONE, "inner": Outer.Inner.CUT, "type": Span}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(written, protocol))
    found = pickle_file(tmp_path / "a.pkl", ("tests",))
    span, status, inner = found["span"], found["status"], found["inner"]
    assert all(isinstance(each, Made) for each in (span, status, inner))
    assert span.state == {"version": "7"}
    assert status.arguments == ("done",)
    assert (inner.of.name, inner.arguments) == ("Outer.Inner", ("cut",))
    with pytest.raises(ValueError, match="it names 'tests"):
        pickle_file(tmp_path / "a.pkl", ("slime",))


class Calls:
    """Pickles as a call."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


CODE = [
    Calls(os.system, "touch HERE"), Calls(eval, "1"), Calls(exec, "1"), Calls(__import__, "os"),
    Calls(open, "HERE", "w"), Calls(getattr, "text", "upper"), Calls(torch.load, "HERE"),
    Calls(torch.hub.load, "a", "b"),
    Calls(collections.Counter, "a"), Calls(np.load, "HERE"), Calls(pickle.loads, b"."), Calls(print, "loud"),
    Calls(bytearray, 10**9), Calls(np.zeros, 10**9),
]  # fmt: skip


@pytest.mark.parametrize("hostile", CODE, ids=lambda call: call.call[0].__name__)
@pytest.mark.parametrize("protocol", [2, 4])
def test_code_is_refused_or_does_nothing(
    hostile: Calls, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"samples": [hostile]}, protocol))
    torch.save({"samples": [hostile]}, tmp_path / "a.pt", pickle_protocol=protocol)
    harmless = hostile.call[0] is bytearray
    for read, name in ((pickle_file, "a.pkl"), (torch_file, "a.pt")):
        if harmless:
            assert read(tmp_path / name, ()) == {"samples": [b""]}
            continue
        with pytest.raises(ValueError, match=r"it (names|asks|calls)") as raised:
            read(tmp_path / name, ())
        assert "\n" not in str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pkl", "a.pt"]
    assert capfd.readouterr() == ("", "")


def nested(depth: int) -> bytes:
    return b"\x80\x02})" + b"\x85" * depth + b"K\x01s."


def laughs(depth: int) -> bytes:
    """A list of ten times a list of ten times …"""
    program = b"\x80\x02]q\x00"
    for level in range(depth):
        program += b"](" + b"h" * 0 + b"".join(b"h" + bytes([level]) for _ in range(10)) + b"eq" + bytes([level + 1])
    return program + b"."


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (b"", "damaged"),
        (b"\x80\x02", "damaged"),
        (b"\x80\x09.", "newer protocol"),
        (b"\x80\x02.", "damaged"),
        (b"\x80\x02e.", "no mark"),
        (b"\x80\x02(", "damaged"),
        (b"\x80\x02X\xff\xff\xff\xffa.", "cut off"),
        (b"\x80\x02\x8b\x00\x00\x00\x80.", "damaged|cut off|number"),
        (b"\x80\x02\x8b\x00\x00\x00\x01" + b"\x01" * 2**24 + b".", "a number of"),
        (b"\x80\x02G\x00.", "cut off"),
        (b"\x80\x02h\x05.", "damaged"),
        (b"\x80\x02K\x01K\x02b.", "a state"),
        (b"\x80\x02K\x01]R.", "calls something"),
        (b"\x80\x02cos\nsystem\nX\x01\x00\x00\x00a\x85R.", "names 'os.system'"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "names 'os.system'"),
        (b"\x80\x02\x82\x01.", "damaged"),
        (b"\x80\x02I1\n.", "damaged"),
        (b"\x80\x02]q\x00h\x00a.", "over and over"),
        (b"\x80\x02Nr\xff\xff\xff\xff.", None),
        (nested(100_000), "as a key"),
        (laughs(9), "over and over"),
        (b"\x80\x02K\x01Q.", "outside of it"),
    ],
)
def test_a_broken_or_hostile_program_is_refused_in_one_line(program: bytes, said: str | None, tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(program)
    if said is None:
        assert pickle_file(tmp_path / "a.pkl", ()) is None
        return
    with pytest.raises(ValueError, match=said):
        pickle_file(tmp_path / "a.pkl", ())


def test_a_large_memo_costs_no_search(tmp_path: Path) -> None:
    many = 30_000
    program = [b"\x80\x04]N", *(b"r" + place.to_bytes(4, "little") for place in range(10, 10 + many))]
    program.append(b"cnumpy\ndtype\nq\x010X\x02\x00\x00\x00f4\x85q\x020K\x03X\x01\x00\x00\x00<\x86q\x030")
    program += [b"h\x01h\x02Rh\x03b0"] * many  # a type of numbers that nobody remembers
    (tmp_path / "a.pkl").write_bytes(b"".join([*program, b"."]))
    began = time.process_time()
    pickle_file(tmp_path / "a.pkl", ())
    assert time.process_time() - began < 5, "each looked through the whole memo: 15 seconds"


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_an_array_that_occurs_twice_is_one(protocol: int, tmp_path: Path) -> None:
    shared, other = np.arange(3), np.arange(4.0)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps([shared, other, shared, [shared, other]], protocol))
    first, second, again, inner = pickle_file(tmp_path / "a.pkl", ())
    assert (first.tolist(), second.tolist()) == ([0, 1, 2], [0, 1, 2, 3])
    assert again is first
    assert inner[0] is first
    assert inner[1] is second


def archive(path: Path, program: bytes, storage: bytes = b"\0" * 8, compress: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compress) as file:
        file.writestr("a/data.pkl", program)
        file.writestr("a/data/0", storage)
    return path


def tensor(begin: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> bytes:
    """The program of a tensor of floats in the storage 0."""
    written = io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> Any:
            return ("storage", torch.FloatStorage, "0", "cpu", 2) if value == "here" else None

    Pickler(written, 2).dump(Calls(torch._utils._rebuild_tensor_v2, "here", begin, shape, strides, False, {}))
    return written.getvalue()


@pytest.mark.parametrize(
    ("begin", "shape", "strides"),
    [(0, (3,), (1,)), (1, (2,), (1,)), (-1, (1,), (1,)), (0, (2,), (-1,)), (0, (-1,), (1,)),
     (0, (2**20, 2**20), (0, 0)),
     (0, (2,), (1, 1)), (10, (1,), (1,)), (0, (2,), (2**62,))],
)  # fmt: skip
def test_a_tensor_outside_of_its_numbers_is_refused(
    begin: int, shape: tuple[int, ...], strides: tuple[int, ...], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"outside of its numbers|MiB|damaged"):
        torch_file(archive(tmp_path / "a.pt", tensor(begin, shape, strides)), ())


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    bomb = archive(tmp_path / "a.pt", b"\x80\x02N.", compress=zipfile.ZIP_DEFLATED)
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("a/data.pkl", "w", force_zip64=True) as out,
    ):
        for _ in range(1100):
            out.write(b"N" * 2**20)
    with pytest.raises(ValueError, match="MiB"):
        torch_file(bomb, ())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive", b"\x80\x02N."])
def test_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(content)
    with pytest.raises(ValueError, match=r"no file of torch\.save"):
        torch_file(tmp_path / "a.pt", ())
    with zipfile.ZipFile(tmp_path / "b.pt", "w") as file:
        file.writestr("a/other", b"")
    with pytest.raises(ValueError, match=r"no data\.pkl"):
        torch_file(tmp_path / "b.pt", ())


def test_mutants_are_read_or_refused(tmp_path: Path) -> None:
    torch.save(plain(1) | {"tensors": tensors()}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as file:
        program = next(file.read(name) for name in file.namelist() if name.endswith("data.pkl"))
    made = random.Random(5)
    said = []
    for _ in range(400):
        data = bytearray(program)
        for _ in range(made.randint(1, 4)):
            data[made.randrange(len(data))] = made.randrange(256)
        try:
            torch_file(archive(tmp_path / "b.pt", bytes(data)), ())
        except ValueError as error:
            said.append(str(error))
    assert len(said) > 100
    assert not [line for line in said if "\n" in line]
