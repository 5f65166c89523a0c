"""The walls between the rooms: who may import whom, and what each entry point must not load."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp

from rlplay.trace.runfile import RunWriter
from tests.recorded import synthetic_started, synthetic_update

CHECKOUT = Path(__file__).parent.parent
HEAVY = ("torch", "transformers", "accelerate", "huggingface_hub", "datasets")


def loaded_after(code: str) -> set[str]:
    """The names in sys.modules after running `code` in a fresh interpreter."""
    program = f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    return set(done.stderr.split())


def test_import_contracts() -> None:
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    done = subprocess.run(command, cwd=CHECKOUT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_circle_of_imports() -> None:
    graph = grimp.build_graph("rlplay", cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) - {module} for module in graph.modules}
    order = list(graphlib.TopologicalSorter(imported).static_order())
    assert set(order) == graph.modules


def test_only_the_screen_loads_textual_and_only_the_engine_torch() -> None:
    without_either = (
        "rlplay.trace.records, rlplay.trace.update, rlplay.trace.lenses, rlplay.trace.metrics, rlplay.trace.runfile",
        "rlplay.link.messages",
        "rlplay.scenario.loader, rlplay.scenario.script, rlplay.scenario.expect, rlplay.verbs",
        "rlplay.tasks, rlplay.tasks.own_prompts",
        "rlplay.engine.headless, rlplay.engine.run_report",
    )
    assert not loaded_after(f"import {', '.join(without_either)}") & {*HEAVY, "textual"}
    assert not loaded_after("import rlplay.ui.start") & set(HEAVY)


def test_import_rlplay_loads_next_to_nothing() -> None:
    assert not loaded_after("import rlplay") & {*HEAVY, "numpy", "msgspec", "textual", "rlplay.api"}
    assert not loaded_after("from rlplay import open_run") & {*HEAVY, "pandas", "textual"}


def test_help_loads_next_to_nothing() -> None:
    loaded = loaded_after("from rlplay.cli.main import cli; cli.main(['--help'], standalone_mode=False)")
    assert not loaded & {*HEAVY, "numpy", "msgspec", "yaml", "textual", "rlplay.scenario.loader"}


def test_exports_load_no_torch(tmp_path: Path) -> None:
    scenario = "{name: sums, title: Sums, question: '?', task: arithmetic}"
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started(scenario_text=scenario))
    for record in synthetic_update(1):
        writer.append(record)
    writer.close()
    kinds = ("parquet", "tensorboard", "trl")
    commands = [["export", str(writer.path), "--format", kind, "--out", str(tmp_path / kind)] for kind in kinds]
    each = f"for command in {commands!r}: cli.main(command, standalone_mode=False)"
    assert not loaded_after(f"from rlplay.cli.main import cli\n{each}") & {*HEAVY, "textual"}
    assert all((tmp_path / kind).exists() for kind in kinds)


def test_an_unknown_device_is_refused_without_torch() -> None:
    refused = "cli.main(['--device', 'tpu'], standalone_mode=False)"
    loaded = loaded_after(f"from rlplay.cli.main import cli\ntry: {refused}\nexcept Exception as e: print(e)")
    assert not loaded & {*HEAVY, "textual"}


def test_what_is_imported_is_declared_and_the_reverse() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = project["dependencies"] + [line for name in _OPTIONAL for line in extras[name]]
    names = {re.split(r"[^\w-]", line, maxsplit=1)[0].lower() for line in declared}
    imported = {
        name.partition(".")[0]
        for path in (CHECKOUT / "rlplay").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _imported(node)
    }
    ours = imported - sys.stdlib_module_names - {"rlplay"}
    foreign = {_PACKAGES.get(name, name.lower().replace("_", "-")) for name in ours}
    assert foreign == names


WALL_CLOCK = {
    "foreign/files.py": "whether another trainer still writes its newest file",
    "paths.py": "names of runs; whether a program without locks may still load",
    "trace/runfile.py": "when a run was created",
    "ui/session/session.py": "what the log shows beside a line",
}


def test_nothing_else_reads_the_wall_clock_which_may_jump() -> None:
    reads = re.compile(
        r"\btime\.time\(|\bdatetime\.(now|utcnow|today)\(|from time import .*\btime\b|\bcall_at\(|timeout_at\("
    )
    found = {
        path.relative_to(CHECKOUT / "rlplay").as_posix()
        for path in (CHECKOUT / "rlplay").rglob("*.py")
        if reads.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(WALL_CLOCK)


_OPTIONAL = ("png", "datasets", "serve", "parquet", "tensorboard", "pandas", "parity", "peft")
_PACKAGES = {"yaml": "pyyaml", "PIL": "pillow"}


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
