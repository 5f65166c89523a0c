"""What commands print with --json keeps to its schema, and the documentation to both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rlplay.cli import main as cli
from rlplay.printed import SCHEMAS
from tests.cli.command_line import called
from tests.cli.made_up_engine import made_up_engine
from tests.recorded import synthetic_run

DOCS = Path(__file__).parents[2] / "docs"
GIVEN = {
    "health": ["whole"],
    "run": ["two-plus-two", "--updates", "1"],
    "settings": ["beta"],
    "try": ["whole"],
    "teachers": ["whole", "--update", "2", "--answer", "3", "--without", "4"],
}
"""Arguments of the commands that need some."""


def schema_file(name: str) -> Path:
    """Where the JSON Schema of an object is."""
    return DOCS / "schemas" / f"{name.replace('/', '-')}.json"


def schema_text(name: str) -> str:
    """The JSON Schema of an object."""
    return json.dumps(msgspec.json.schema(SCHEMAS[name]), indent=1, ensure_ascii=False) + "\n"


def commands() -> list[str]:
    """The commands that take --json."""
    return [name for name, each in cli.cli.commands.items() if any("--json" in param.opts for param in each.params)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_on_file_is_the_one_in_use(name: str) -> None:
    assert schema_file(name).read_text(encoding="utf-8") == schema_text(name), "python -m tests.cli.test_json"


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_field_is_explained(name: str) -> None:
    section = (DOCS / "json.md").read_text(encoding="utf-8").partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    missing = [field for field in _fields(SCHEMAS[name]) if f"`{field}`" not in section]
    assert not missing


def _fields(kind: Any) -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        yield field.encode_name
        for inner in getattr(field.type, "__args__", ()):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                yield from _fields(inner)


@pytest.mark.parametrize("command", commands())
def test_what_is_printed_keeps_to_its_schema(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "broken.rlplay").write_bytes(b"nothing")
    made_up_engine(monkeypatch, synthetic_run(tmp_path / "runs" / "whole\x1b[31m.rlplay", updates=2))
    status, out, _ = called(capsys, command, *GIVEN.get(command, []), "--json")
    assert status in (0, 1, 4)
    assert "\x1b" not in out
    for line in out.splitlines():
        printed = json.loads(line)
        kind = SCHEMAS[printed["schema"]]
        assert printed["schema"].split("/")[0].split("-")[0] == command
        assert msgspec.to_builtins(msgspec.json.decode(line, type=kind)).keys() == printed.keys()


if __name__ == "__main__":
    for each in SCHEMAS:
        schema_file(each).parent.mkdir(exist_ok=True)
        schema_file(each).write_text(schema_text(each), encoding="utf-8")
