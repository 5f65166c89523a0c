"""The faults by name that tests inject, each with its test: `python -m tests.faults` lists them."""

from __future__ import annotations

from collections.abc import Iterator

from tests import test_plain_yaml, test_user_code
from tests.cli import test_trust
from tests.engine import test_fit
from tests.trace import test_damage

OTHERS = {
    "the disk is full": "tests/trace/test_runfile_errors.py",
    "the folder is read-only": "tests/trace/test_runfile_errors.py",
    "a run file cut in half": "tests/trace/test_runfile_errors.py",
    "a run file of a newer format": "tests/trace/test_runfile_errors.py",
    "another program's database": "tests/trace/test_runfile_errors.py",
    "out of memory in an update": "tests/engine/test_out_of_memory.py",
    "out of memory on a GPU in each phase, and in the capture of a graph": "tests/gpu/test_failures.py",
    "a GPU cannot capture a graph, when a model is loaded or in a run": "tests/gpu/test_failures.py",
    "the engine is killed": "tests/kills.py",
    "a headless run is killed, loading included": "tests/test_kills.py",
    "SIGTERM or SIGHUP to a headless run": "tests/cli/test_headless.py",
    "the terminal closes where SIGHUP is ignored": "tests/test_suspend.py",
    "a run is killed before its first snapshot": "tests/cli/test_resume.py",
    "a program is killed while it loads": "tests/test_paths.py",
    "more tabs than the server has room for": "tests/test_serve.py",
    "the server is killed": "tests/test_serve.py",
    "a run is open in another program": "tests/cli/test_disk.py",
    "a program is killed while it copies a run": "tests/test_paths.py",
    "a program is killed while it writes a snapshot": "tests/engine/test_snapshots.py",
    "an export is killed": "tests/trace/test_export.py",
    "ctrl+z, SIGTSTP and SIGSTOP to the screen": "tests/test_suspend.py",
    "a driver that is none": "tests/cli/test_surroundings.py",
    "the current folder is gone": "tests/cli/test_surroundings.py",
    "the run file, or its folder, is deleted while it is written": "tests/trace/test_runfile_errors.py",
    "the folder becomes read-only while the run is written": "tests/trace/test_runfile_errors.py",
    "the disk is full midway and has room again": "tests/trace/test_runfile_errors.py",
    "the disk has no room for snapshots": "tests/engine/test_driver.py",
    "SIGSTOP to the engine, and SIGCONT": "tests/link/test_client.py",
    "the screen is killed while a reward function sleeps, ends the process or keeps the interpreter": (
        "tests/link/test_orphans.py"
    ),
    "what started several processes is killed": "tests/link/test_orphans.py",
    "the clock jumps": "tests/test_walls.py",
    "a file that a trusted file imports has changed": "tests/cli/test_trust.py",
}


def faults() -> Iterator[tuple[str, str]]:
    """Every fault and the file of its test."""
    yield from OTHERS.items()
    tables = (
        ("YAML: ", test_plain_yaml.REFUSED, test_plain_yaml),
        ("a function: ", test_user_code.BAD, test_user_code),
        ("a function that ends the process is: ", test_user_code.OTHERS, test_user_code),
        ("a run hangs ", test_user_code.HANGS, test_user_code),
        ("code that is named by: ", test_trust.NAMES, test_trust),
        ("a model: ", test_fit.BROKEN, test_fit),
        ("a record of a run file: ", test_damage.BYTES, test_damage),
    )
    for head, names, module in tables:
        for name in names:
            yield head + name, f"{module.__name__.replace('.', '/')}.py"
    for kind, what, _ in test_damage.ODD:
        yield f"a record '{kind}' with {what}", "tests/trace/test_damage.py"


if __name__ == "__main__":
    for fault, test in faults():
        print(f"{fault:<70} {test}")
