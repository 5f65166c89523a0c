"""Tasks, statistics, metrics and algorithms of other packages, found by their entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlplay.engine import own_metrics
from rlplay.engine.driver import Driver
from rlplay.engine.own_metrics import measured
from rlplay.trace.metrics import Metric
from rlplay.trace.records import Finished
from rlplay.trace.update import Update
from tests.recorded import synthetic_update

MODULE = """
from rlplay.tasks import Task
from rlplay.trace.lenses import Lens
from rlplay.trace.metrics import Metric

def right(completions, **columns):
    return [1.0] * len(completions)

def riddles():
    return Task(train=[{"prompt": "What has keys?"}], rewards={"right": right})

def values(update):
    return update.sampled.token_ids * 2

twice = Lens("twice", "Twice", "2i", "twice the id", "", "sample", "sequential", 0, 10, "Nothing.", values)
failing = Lens("failing", "F", "f", "f", "", "sample", "sequential", 0, 10, "Nothing.", lambda u: [1.0])
tokens = Metric("tokens_seen", "Tokens", "their number", "tokens", "", value=lambda update: update.tokens)
aimless = Metric("aimless", "A", "a", "", "")
soft = {"title": "Soft", "after": "grpo", "settings": {"epsilon": 0.4}}
wrong = {"title": "Wrong", "after": "nobody", "settings": {}}
"""
ENTRIES = """
[rlplay.tasks]
riddles = extra_things:riddles
gone = extra_things:nothing
[rlplay.lenses]
twice = extra_things:twice
failing = extra_things:failing
entropy = extra_things:twice
other = extra_things:twice
heavy = extra_heavy:lens
[rlplay.metrics]
tokens_seen = extra_things:tokens
aimless = extra_things:aimless
[rlplay.algorithms]
soft = extra_things:soft
wrong = extra_things:wrong
broken = extra_broken:x
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny package and what pip writes beside it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "extra_things.py").write_text(MODULE)
    (folder / "extra_broken.py").write_text("1 / 0\n")
    (folder / "extra_heavy.py").write_text("import torch\n")
    info = folder / "rlplay_extra-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rlplay-extra\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    return folder


def ask(installed: Path, source: str) -> Any:
    """What a program prints as JSON in a process that has the package."""
    path = os.pathsep.join([str(installed), str(Path(__file__).parents[2])])
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], env={**os.environ, "PYTHONPATH": path}, text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    return json.loads(found.stdout)


def test_each_joins_its_registry(installed: Path) -> None:
    found = ask(installed, """
        import json, sys
        from rlplay.trace.lenses import LENSES
        from rlplay.trace.metrics import describe
        from rlplay.algorithms.named import preset
        from rlplay.scenario.load_plugins import join
        from rlplay.tasks import load_task, task_names
        join()
        from tests.recorded import synthetic_update
        from rlplay.trace.update import Update
        update = Update(1)
        for record in synthetic_update(1):
            update.add(record)
        heavy = [name for name in ("torch", "transformers", "textual") if name in sys.modules]
        task = load_task("riddles")
        print(json.dumps({
            "lens": bool((LENSES["twice"].values(update) == update.sampled.token_ids * 2).all()),
            "failing": LENSES["failing"].values(update) is None, "formula": LENSES["entropy"].title,
            "metric": describe("tokens_seen").title, "soft": preset("soft").axes["epsilon"], "heavy": heavy,
            "tasks": task_names()[-2:], "task": [task.name, task.train[0].prompt, list(task.rewards)],
        }))
    """)  # fmt: skip
    assert found == {
        "lens": True, "failing": True, "formula": "Entropy", "metric": "Tokens", "soft": 0.4, "heavy": [],
        "tasks": ["riddles", "gone"], "task": ["riddles", "What has keys?", ["right"]],
    }  # fmt: skip


def test_the_doctor_names_each_and_why_one_is_left_out(installed: Path) -> None:
    lines = ask(installed, """
        import json
        from rlplay.cli.doctor import _plugins
        print(json.dumps(list(_plugins())))
    """)  # fmt: skip
    left = "from rlplay-extra 1.2 CANNOT BE USED:"
    assert all("\n" not in line for line in lines)
    assert "task riddles from rlplay-extra 1.2" in lines
    assert "lens twice from rlplay-extra 1.2" in lines
    assert "metric tokens_seen from rlplay-extra 1.2" in lines
    assert "algorithm soft from rlplay-extra 1.2" in lines
    refused = [line for line in lines if left in line]
    for words in (
        f"task gone {left} AttributeError",
        f"lens entropy {left} rlplay has one of this name itself",
        f"lens other {left} it calls itself 'twice'",
        f"lens heavy {left} ImportError: it imports torch, which the screen does without",
        f"metric aimless {left} it has no value, a function of an update",
        f"algorithm wrong {left} wrong: after=nobody: no such algorithm",
        f"algorithm broken {left} ZeroDivisionError",
    ):
        assert any(line.startswith(words) for line in refused), (words, refused)
    assert len(refused) == 7


def test_a_missing_task_is_one_line_that_names_the_package(installed: Path) -> None:
    said = ask(installed, """
        import json
        from rlplay.tasks import load_task
        try:
            load_task("gone")
        except ValueError as error:
            print(json.dumps(str(error)))
    """)  # fmt: skip
    assert said.startswith("task gone from rlplay-extra 1.2 CANNOT BE USED: AttributeError")


def test_a_metric_is_computed_of_every_finished_update(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_update: Update) -> float:
        raise ZeroDivisionError

    added = {
        "tokens": Metric("tokens", "T", "", "", "", value=lambda update: update.tokens),
        "broken": Metric("broken", "B", "", "", "", value=broken),
        "absent": Metric("absent", "A", "", "", "", value=lambda _update: None),
    }
    monkeypatch.setattr(own_metrics, "ADDED", added)
    monkeypatch.setattr(own_metrics, "refuse", lambda *_words: None)
    for number in (1, 2):
        records = synthetic_update(number)
        *_, last = measured(iter(records))
        assert isinstance(last, Finished)
        assert last.metrics == {**records[-1].metrics, "tokens": len(records[0].token_ids)}


def test_a_run_records_it(start: Callable[..., tuple[Driver, list[Any]]], monkeypatch: pytest.MonkeyPatch) -> None:
    added = {"tokens": Metric("tokens", "T", "", "", "", value=lambda update: update.tokens)}
    monkeypatch.setattr(own_metrics, "ADDED", added)
    driver, records = start()
    driver.advance("update", 1, lambda: False)
    driver.close()
    (finished,) = [record for record in records if isinstance(record, Finished)]
    assert finished.metrics["tokens"] > 0
