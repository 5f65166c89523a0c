"""The stand-in's library: built once with g++ for each release of torch, and loaded before torch."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import importlib.util
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import platformdirs

SOURCES = Path(__file__).parent / "device"
WAIT = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
"""What is called with the reason whenever the host waits for the device."""

_FLAGS = ["-std=c++20", "-O1", "-fPIC", "-w"]
_RETURN_TEXT = ["finish", "synchronize", "graph_begin", "graph_replay", "graph_kernels", "take_launches"]
_INTEGER, _POINTER = ctypes.c_int64, ctypes.c_void_p
_ARGUMENTS = {
    "set_limit": [ctypes.c_int, ctypes.c_size_t], "fail_allocation": [_INTEGER], "set_stream": [ctypes.c_int, _INTEGER],
    "record": [_INTEGER], "is_done": [_INTEGER, _INTEGER], "finish": [_INTEGER, _INTEGER],
    "go_after": [_INTEGER, _INTEGER, _INTEGER], "graph_delete": [_POINTER], "graph_begin": [_POINTER, ctypes.c_int],
    "graph_replay": [_POINTER], "graph_kernels": [_POINTER], "on_wait": [WAIT],
}  # fmt: skip
_RETURNS = {"used": ctypes.c_size_t, "peak": ctypes.c_size_t, "stream": _INTEGER, "record": _INTEGER, "graph": _POINTER}


@cache
def missing() -> str:
    """Why the stand-in cannot be built here; "" if it can. Imports no torch."""
    if not sys.platform.startswith("linux"):
        return "the stand-in for a GPU is built on Linux"
    if shutil.which("g++") is None:
        return "the stand-in for a GPU needs g++"
    if _version()["cuda"] is not None or _version()["hip"] is not None:
        return "the stand-in for a GPU needs torch's build for CPUs"
    return "" if (_torch() / "include" / "torch" / "library.h").exists() else "torch has no headers here"


def load() -> ctypes.CDLL:
    """The library, built if it is not yet. Raises RuntimeError if torch was there first, or with g++'s message."""
    if "torch" in sys.modules:
        raise RuntimeError("the stand-in for a GPU has to be loaded before torch")
    library = ctypes.CDLL(str(_built()), ctypes.RTLD_GLOBAL)
    for name in _RETURN_TEXT:
        getattr(library, f"stand_in_{name}").restype = ctypes.c_char_p
    for name, arguments in _ARGUMENTS.items():
        getattr(library, f"stand_in_{name}").argtypes = arguments
    for name, kind in _RETURNS.items():
        getattr(library, f"stand_in_{name}").restype = kind
    return library


def _torch() -> Path:
    found = importlib.util.find_spec("torch")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


@cache
def _version() -> dict[str, object]:
    return runpy.run_path(str(_torch() / "version.py"))


def _built() -> Path:
    """The file, in the user's cache; another process that needs it meanwhile waits."""
    sources = sorted(SOURCES.iterdir())
    described = [str(_version()["__version__"]).encode(), *(path.read_bytes() for path in sources)]
    key = hashlib.sha256(b"\0".join(described)).hexdigest()[:16]
    folder = Path(platformdirs.user_cache_dir("rlplay", appauthor=False)) / "stand-in-gpu"
    folder.mkdir(parents=True, exist_ok=True)
    built = folder / f"{key}.so"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            _build([path for path in sources if path.suffix == ".cpp"], built)
    return built


def _build(sources: list[Path], built: Path) -> None:
    torch = _torch()
    include = [f"-I{torch / 'include'}", f"-I{torch / 'include' / 'torch' / 'csrc' / 'api' / 'include'}"]
    with tempfile.TemporaryDirectory(dir=built.parent) as folder:
        objects = {source: f"{folder}/{source.stem}.o" for source in sources}
        _together([["g++", *_FLAGS, *include, "-c", str(one), "-o", made] for one, made in objects.items()])
        libraries = [f"-L{torch / 'lib'}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{torch / 'lib'}"]
        _together([["g++", "-shared", *objects.values(), "-o", f"{folder}/built.so", *libraries]])
        os.replace(f"{folder}/built.so", built)


def _together(commands: list[list[str]]) -> None:
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    said = [process.communicate()[1] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError("g++ could not build the stand-in for a GPU:\n" + "".join(said)[:4000])
