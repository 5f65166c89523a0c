"""Reads what `torch.save` and `pickle.dump` wrote, as plain data and numpy arrays, without torch and without pickle.

A file of `torch.save` is a ZIP archive: `NAME/data.pkl` is a pickle in which persistent ids stand for tensors'
storages, and `NAME/data/KEY` has the bytes of one (torch/serialization.py).
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rlplay.foreign.json_lines import check_file
from rlplay.foreign.pickled import Made, Name, PickleError, Unfinished, flat_key, loads
from rlplay.trace.inflate import Budget
from rlplay.trace.records import Array

_STORAGES = {
    "DoubleStorage": "<f8", "FloatStorage": "<f4", "HalfStorage": "<f2", "BFloat16Storage": "bfloat16",
    "LongStorage": "<i8", "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "|i1", "ByteStorage": "|u1",
    "BoolStorage": "|b1",
}  # fmt: skip
_TENSORS = ("_rebuild_tensor", "_rebuild_tensor_v2")


def torch_file(path: Path, packages: tuple[str, ...]) -> Any:
    """What a file of `torch.save` holds. Objects of the trainer's `packages` are `Made`, any other is refused.

    Raises ValueError if the file is damaged, holds code, or would take too much memory.
    """
    check_file(path)
    return _archived(path, path.stat().st_size, packages)


def torch_bytes(data: bytes, packages: tuple[str, ...]) -> Any:
    """The same of such a file's content."""
    return _archived(io.BytesIO(data), len(data), packages)


def _archived(file: Path | io.BytesIO, size: int, packages: tuple[str, ...]) -> Any:
    try:
        with zipfile.ZipFile(file) as archive:
            return _Archive(archive, Budget(size)).value(packages)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"it is no file of torch.save ({error})") from None


def pickle_file(path: Path, packages: tuple[str, ...]) -> Any:
    """What a file of `pickle.dump` holds; as `torch_file`."""
    check_file(path)
    data = path.read_bytes()
    return loads(data, _make, lambda name: _known(name, packages), _no_storage, Budget(len(data)))


@dataclass(frozen=True)
class _Storage:
    dtype: str
    data: bytes
    budget: Budget


class _Archive:
    """An open archive, and the storages that were read of it."""

    def __init__(self, archive: zipfile.ZipFile, budget: Budget) -> None:
        self._archive, self._budget = archive, budget
        pickles = sorted((name for name in archive.namelist() if name.endswith("/data.pkl")), key=len)
        if not pickles:
            raise ValueError("it is no file of torch.save: it has no data.pkl")
        self._root = pickles[0].removesuffix("data.pkl")
        self._read: dict[str, _Storage] = {}

    def value(self, packages: tuple[str, ...]) -> Any:
        """What the archive holds."""
        order = self._root + "byteorder"
        if order in self._archive.namelist() and self._content(order) != b"little":
            raise ValueError("its numbers are big-endian")
        data = self._content(self._root + "data.pkl")
        return loads(data, _make, lambda name: _known(name, packages), self._stored, self._budget)

    def _content(self, name: str) -> bytes:
        entry = self._archive.getinfo(name)
        self._budget.spend(entry.file_size)
        with self._archive.open(entry) as file:
            return file.read(entry.file_size)

    def _stored(self, described: Any) -> _Storage:
        kind, dtype, key = described[:3]
        if kind != "storage" or not isinstance(dtype, Name) or dtype.name not in _STORAGES:
            raise PickleError(f"it holds numbers of a type that is not read ({str(dtype)[:40]})")
        key = str(key)
        if key not in self._read:
            content = self._content(f"{self._root}data/{key}")
            self._read[key] = _Storage(_STORAGES[dtype.name], content, self._budget)
        return self._read[key]


def _no_storage(_described: Any) -> Any:
    raise PickleError("it refers to something outside of it")


def _known(name: Name, packages: tuple[str, ...]) -> bool:
    """Whether a name may occur: one that stands for data, or a class of the trainer's."""
    pair = (name.module, name.name)
    if name.module in ("torch", "torch.storage") and name.name in _STORAGES:
        return True
    return pair in _MAKERS or pair in _CLASSES or name.module.partition(".")[0] in packages


def _make(name: Name, given: tuple[Any, ...]) -> Any:
    """What a name makes of arguments, without anything being called that it names."""
    maker = _MAKERS.get((name.module, name.name))
    return Made(name, given) if maker is None else maker(given)


def _part_of(given: tuple[Any, ...]) -> Name:
    """A class within a class, as older protocols name it."""
    owner, inner = given
    if not isinstance(owner, Name) or not isinstance(inner, str):
        raise PickleError("it asks an object for a part of it")
    return Name(owner.module, f"{owner.name}.{inner}")


def _listed(given: tuple[Any, ...]) -> list[Any]:
    return list(given[0]) if given and isinstance(given[0], list | tuple) else []


class _Dtype(Unfinished):
    """A type of numbers, as numpy pickles it: its letters, and then its order of bytes."""

    def __init__(self, letters: str) -> None:
        self._letters, self._order = letters, "<"

    def finished(self, state: Any) -> _Dtype:
        """The same, with its order of bytes."""
        self._order = state[1] if state[1] in ("<", ">") else "<"
        return self

    def found(self) -> np.dtype[Any]:
        """The type. Raises PickleError unless it is of numbers."""
        if self._letters not in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"):
            raise PickleError(f"it holds an array of {self._letters[:20]!r}, which are no numbers")
        return np.dtype(self._order + self._letters)


class _Filled(Unfinished):
    """An array without its numbers yet."""

    def finished(self, state: Any) -> Array:
        """The array, of its shape, type and bytes."""
        _, shape, dtype, columns_first, data = state
        return _array(data, dtype.found(), shape, bool(columns_first))


def _array(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], columns_first: bool) -> Array:
    return np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if columns_first else "C")


def _tensor(storage: _Storage, begin: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """A tensor: where it begins in its storage, its shape, and its strides, all counted in numbers."""
    kind = "<u2" if storage.dtype == "bfloat16" else storage.dtype
    flat = np.frombuffer(storage.data, dtype=kind, count=len(storage.data) // np.dtype(kind).itemsize)
    sizes = list(zip(shape, strides, strict=True))
    last = begin + sum((count - 1) * by for count, by in sizes)
    if begin < 0 or any(count < 0 or by < 0 for count, by in sizes) or (0 not in shape and last >= len(flat)):
        raise PickleError("a tensor lies outside of its numbers")
    storage.budget.spend(8 * math.prod(shape))
    if 0 in shape:
        return np.zeros(shape)
    view = np.lib.stride_tricks.as_strided(flat[begin:], shape, [by * flat.itemsize for by in strides], writeable=False)
    found = np.array(view)
    return (found.astype(np.uint32) << 16).view(np.float32) if storage.dtype == "bfloat16" else found


_CLASSES = {("numpy", "ndarray"), ("torch", "device"), ("builtins", "object"), ("__builtin__", "object")}
"""Names that occur as arguments, or of which only the arguments matter."""
_MAKERS: dict[tuple[str, str], Callable[[tuple[Any, ...]], Any]] = {
    ("collections", "OrderedDict"): lambda _: {},
    ("collections", "defaultdict"): lambda _: {},
    ("_codecs", "encode"): lambda given: given[0].encode("latin1"),
    ("torch", "Size"): _listed,
    ("numpy", "dtype"): lambda given: _Dtype(str(given[0])),
    ("torch._utils", "_rebuild_tensor"): lambda given: _tensor(*given[:4]),
    ("torch._utils", "_rebuild_tensor_v2"): lambda given: _tensor(*given[:4]),
}
for _module in ("builtins", "__builtin__"):
    _MAKERS[_module, "getattr"] = _part_of
    _MAKERS[_module, "set"] = _MAKERS[_module, "frozenset"] = lambda given: frozenset(map(flat_key, _listed(given)))
    _MAKERS[_module, "list"] = _listed
    _MAKERS[_module, "bytearray"] = lambda given: given[0] if given and isinstance(given[0], bytes) else b""
for _module in ("copyreg", "copy_reg"):
    _MAKERS[_module, "_reconstructor"] = lambda given: Made(given[0])
for _module in ("numpy.core", "numpy._core"):
    _MAKERS[f"{_module}.multiarray", "_reconstruct"] = lambda _: _Filled()
    _MAKERS[f"{_module}.multiarray", "scalar"] = lambda given: _array(given[1], given[0].found(), (1,), False)[0].item()
    _MAKERS[f"{_module}.numeric", "_frombuffer"] = lambda given: _array(
        given[0], given[1].found(), given[2], given[3] == "F"
    )
