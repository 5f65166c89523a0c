"""Scripts for TRL made from recorded runs, and what they hand to a trainer."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rlplay.algorithms.apply import resolve
from rlplay.export.trl.training_script import export_trl
from rlplay.scenario.schema import Scenario
from rlplay.trace.runfile import RunWriter
from tests.recorded import synthetic_started, synthetic_update

TRL = importlib.util.find_spec("trl")


with_trl = pytest.mark.skipif(TRL is None, reason='TRL is not installed: pip install -e ".[parity]"')


Given = dict[str, Any]


def run_of(folder: Path, settings: Given, updates: int = 1, **fields: Any) -> RunWriter:
    """A recorded run with `updates` finished updates that have no tokens; `fields` are the scenario's."""
    place = {} if "dataset" in fields else {"task": "arithmetic"}
    given = {"title": "Sums", "question": "?", "max_updates": 5, **place, **fields}
    scenario = Scenario(name="sums", settings=settings, **given)
    text = msgspec.yaml.encode(scenario).decode()
    begun = msgspec.to_builtins(resolve(settings | (scenario.stages[0].settings if scenario.stages else {})))
    writer = RunWriter.create(folder / "run.rlplay", synthetic_started(scenario_text=text, settings=begun))
    for number in range(1, updates + 1):
        writer.append(synthetic_update(number)[-1])
    return writer


def script_of(writer: RunWriter) -> str:
    writer.close()
    out = writer.path.with_suffix(".py")
    export_trl(writer.path, out)
    return out.read_text(encoding="utf-8")


def keywords(fields: Iterable[str]) -> Given:
    """What the fields of a config say, without their comments."""
    call = ast.parse("f(\n" + "\n".join(fields) + "\n)", mode="eval").body
    assert isinstance(call, ast.Call)
    return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}


def calls(script: str, end: str) -> list[dict[str, ast.expr]]:
    """The keyword arguments of each call of a name that ends so, in order."""
    found = [n for n in ast.walk(ast.parse(script)) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith(end)]
    return [{str(word.arg): word.value for word in call.keywords} for call in sorted(found, key=lambda n: n.lineno)]
