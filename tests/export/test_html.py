"""The page that replays a run holds the recorded numbers, tells the lesson at its places, and runs nothing foreign."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml

from rlplay.export.atomic_output import ExportError
from rlplay.export.html.page import export_html
from rlplay.export.html.playback import TOKENS
from rlplay.trace.records import Rewound, Sampled, Scored
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.text import visible
from tests.recorded import synthetic_run, synthetic_started, synthetic_update

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)
ENDS = {"script": "</script><script>alert(1)</script>", "comment": "<!--", "escape": "\x1b[2J", "line": "a\u2028b"}


def data_of(page: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DATA.findall(page.read_text(encoding="utf-8"))[0])
    return found


def exported(run: Path) -> dict[str, Any]:
    out = run.with_suffix(".html")
    export_html(run, out)
    return data_of(out)


def written(path: Path, script: list[dict[str, Any]], *records: Any) -> Path:
    text = {"name": "told", "title": "Told", "question": "Is it?", "script": script}
    writer = RunWriter.create(path, synthetic_started(scenario_text=yaml.safe_dump(text)))
    for record in records:
        writer.append(record)
    writer.close()
    return path


def test_the_page_holds_texts_rewards_statistics_and_curves_as_recorded(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run.rlplay", updates=3)
    data = exported(run)
    with RunReader(run) as reader:
        update, reward = reader.load(2), reader.history().at(2)["reward"]
    assert update.sampled is not None
    assert update.scored is not None
    frame = next(each for each in data["frames"] if each["update"] == 2)
    assert frame["of"] == len(frame["answers"]) == update.completions
    ends = update.sampled.offsets
    for row, answer in enumerate(frame["answers"]):
        span = slice(ends[row], ends[row + 1])
        texts = [data["words"][each] for each in answer["tokens"]]
        assert texts == [visible(text) for text in update.sampled.texts[span]]
        assert answer["reward"] == pytest.approx(update.scored.rewards[row], rel=1e-2)
        assert answer["values"]["probability"] == pytest.approx(np.exp(update.sampled.old_logprobs[span]), rel=1e-2)
        chosen = [next(each for each in rows if each[3]) for rows in answer["candidates"]]
        assert [each[1] for each in chosen] == pytest.approx(answer["values"]["probability"], rel=1e-2)
    assert frame["metrics"]["reward"] == pytest.approx(reward, rel=1e-8), "a count has more digits than a colour needs"
    assert frame["metrics"]["eval_reward"] == pytest.approx(0.24), "held-out numbers belong to the update before them"


def test_a_large_run_shows_whole_groups_and_says_how_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlplay.export.html.playback.TOKENS", 3 * 60)
    data = exported(synthetic_run(tmp_path / "run.rlplay", updates=3))
    for frame in data["frames"][1:]:
        assert 0 < len(frame["answers"]) < frame["of"]
        assert len(frame["answers"]) % 4 == 0, "four answers to each prompt"
    assert TOKENS >= 10_000


def test_the_lesson_is_told_at_its_places_and_its_claims_are_measured_there(tmp_path: Path) -> None:
    script = [
        {"say": "Before."},
        {"phase": 2},
        {"say": "Scored."},
        {"update": 1},
        {"lens": "advantages"},
        {"ask": {"question": "Up?", "choices": ["yes", "no"], "answer": "no", "because": "It is made up."}},
        {"update": 1},
        {"expect": {"text": "Reward", "metric": "reward", "above": -100}},
        {"rewind": 0},
        {"say": "Again."},
        {"update": 1},
        {"say": "Over."},
    ]
    two = [*synthetic_update(1), *synthetic_update(2)]
    data = exported(
        written(
            tmp_path / "run.rlplay", script, *two, Rewound(update=0, abandoned=2, asked=True), *synthetic_update(1, 5)
        )
    )
    items = data["lesson"]
    assert data["lessonEnds"]
    assert [(each.get("say"), each["frame"], each["phase"]) for each in items if "say" in each] == [
        ("Before.", 0, None), ("Scored.", 1, "score"), ("Again.", 3, None), ("Over.", 4, None),
    ]  # fmt: skip
    asked = next(place for place, each in enumerate(items) if "ask" in each)
    assert items[asked]["lens"] == "advantages"
    revealed = next(each for each in items if "claims" in each)
    assert revealed["answers"] == asked
    assert revealed["frame"] == 2
    assert [each["passed"] for each in revealed["claims"]] == [True]
    assert [each["act"] for each in data["frames"]] == [0, 0, 0, 1, 1], "what was given up stays an act of its own"


def test_a_lesson_stops_where_the_run_did_something_else(tmp_path: Path) -> None:
    script = [{"update": 1}, {"say": "One."}, {"rewind": 0}, {"say": "Never here."}]
    data = exported(written(tmp_path / "run.rlplay", script, *synthetic_update(1), *synthetic_update(2)))
    assert [each["say"] for each in data["lesson"]] == ["One."]
    assert not data["lessonEnds"]
    assert data["frames"][-1]["update"] == 2, "the rest of the run is there all the same"


@pytest.mark.parametrize("kind", ENDS)
def test_texts_of_a_run_are_data_and_nothing_else_may_run(tmp_path: Path, kind: str) -> None:
    sampled, scored, *others = synthetic_update(1)
    assert isinstance(sampled, Sampled)
    assert isinstance(scored, Scored)
    foul = ENDS[kind]
    sampled = msgspec.structs.replace(sampled, prompts=[foul] * len(sampled.prompts), texts=[foul] * len(sampled.texts))
    run = written(tmp_path / "run.rlplay", [{"say": foul}, {"update": 1}], sampled, scored, *others)
    page = tmp_path / "run.html"
    export_html(run, page)
    html = page.read_text(encoding="utf-8")
    assert foul not in html
    assert html.count("<script") == html.count("</script>") == 2
    assert data_of(page)["lesson"][0]["say"].strip() == foul or kind != "script"
    policy = html.split('Content-Security-Policy" content="')[1].split('"')[0]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for name in ("script", "style"):
        text = re.findall(rf"<{name}>(.*?)</{name}>", html, re.S)[-1]
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert not re.search(r"""(?:src|href)=|url\(|@import|innerHTML|insertAdjacent|eval\(""", html), (
        "loads or makes markup"
    )


def test_a_run_without_an_update_is_refused(tmp_path: Path) -> None:
    run = written(tmp_path / "run.rlplay", [])
    with pytest.raises(ExportError, match="no finished update"):
        export_html(run, tmp_path / "run.html")


@pytest.mark.parametrize(
    ("given", "play", "about"),
    [
        ({}, "rlplay mine.yaml", "mine · "),
        ({"source": "verl", "model": "unknown model"}, "", "unknown model · verl · "),
    ],
)
def test_a_page_names_no_folder_and_no_command_that_another_trainer_lacks(
    tmp_path: Path, given: dict[str, str], play: str, about: str
) -> None:
    text = {"name": "mine", "title": "Mine", "question": "", "origin": "/home/someone/mine.yaml"}
    run = tmp_path / "run.rlplay"
    started = synthetic_started(scenario_text=yaml.safe_dump(text), **{"model": "/home/someone/mine"} | given)
    writer = RunWriter.create(run, started)
    for record in synthetic_update(1):
        writer.append(record)
    writer.close()
    data = exported(run)
    assert data["play"] == play
    assert about in data["about"]
    assert "someone" not in run.with_suffix(".html").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_of_the_page_is_javascript(tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    export_html(synthetic_run(tmp_path / "run.rlplay", updates=1), page)
    script = tmp_path / "page.js"
    script.write_text(
        re.findall(r"<script>(.*?)</script>", page.read_text(encoding="utf-8"), re.S)[-1], encoding="utf-8"
    )
    done = subprocess.run(["node", "--check", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


PRESSED = """
const fs = require("fs"), listeners = {};
const thing = () => ({
  style: {}, dataset: {}, classList: { add() {}, remove() {}, contains: () => false, toggle() {} }, textContent: "",
  append() {}, replaceChildren() {}, setAttribute() {}, querySelector: () => null, addEventListener() {},
});
const data = { ...thing(), textContent: fs.readFileSync(process.argv[3], "utf8") };
globalThis.document = {
  body: thing(), createElement: thing, createElementNS: thing, getElementById: (id) => (id === "data" ? data : thing()),
  addEventListener: (kind, heard) => { listeners[kind] = heard; },
};
new Function(fs.readFileSync(process.argv[2], "utf8"))();
const taken = ([key, tagName]) => {
  let found = false;
  listeners.keydown({ key, target: { tagName }, preventDefault: () => { found = true; } });
  return found;
};
const keys = [["ArrowLeft", "BODY"], ["ArrowLeft", "INPUT"], ["PageDown", "INPUT"], ["]", "INPUT"], [" ", "BUTTON"]];
console.log(JSON.stringify(keys.map(taken)));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_slider_and_buttons_keep_their_own_keys(tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    export_html(synthetic_run(tmp_path / "run.rlplay", updates=2), page)
    html = page.read_text(encoding="utf-8")
    for name, text in (
        ("press.js", PRESSED), ("page.js", re.findall(r"<script>(.*?)</script>", html, re.S)[-1]),
        ("data.json", DATA.findall(html)[0]),
    ):  # fmt: skip
        (tmp_path / name).write_text(text, encoding="utf-8")
    names = [str(tmp_path / name) for name in ("press.js", "page.js", "data.json")]
    done = subprocess.run(["node", *names], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [True, False, False, True, False]
