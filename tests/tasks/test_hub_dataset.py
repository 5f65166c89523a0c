"""Datasets on Hugging Face: read by their own library, or one line says why not."""

import json
import sys

import pytest

from rlplay import hub
from rlplay.tasks.hub_dataset import hub_rows
from rlplay.tasks.own_prompts import load_own
from rlplay.tasks.task import Example

datasets = pytest.importorskip("datasets")
ROWS = [{"prompt": f"{n}+{n}?", "answer": str(2 * n)} for n in range(4)]
CONFIGS = """\
---
configs:
- config_name: main
  data_files: "main/*.jsonl"
- config_name: hard
  data_files: "hard/*.jsonl"
---
"""


@pytest.fixture(autouse=True)
def _cache(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "out_of_reach", lambda: "the hub cannot be reached: no route to host")


@pytest.fixture
def folder(tmp_path):
    """A dataset of two configurations, four rows each."""
    path = tmp_path / "sums"
    for config in ("main", "hard"):
        (path / config).mkdir(parents=True)
        (path / config / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (path / "README.md").write_text(CONFIGS)
    return path


def test_the_rows_of_a_split_or_of_a_slice_of_it_are_a_task(folder):
    task = load_own(folder, {}, config="main")
    assert task.train == [Example(row["prompt"], {"answer": row["answer"]}) for row in ROWS]
    assert len(load_own(folder, {}, config="hard", split="train[:2]").train) == 2
    assert datasets.config.HF_DATASETS_TRUST_REMOTE_CODE is False, "a script that an old dataset brings is not run"


@pytest.mark.parametrize(
    ("config", "split", "words"),
    [
        (None, "train", r"pick one among the available configs: \['main', 'hard'\]; dataset_config"),
        ("mian", "train", r"'mian' not found. Available: \['main', 'hard'\]; dataset_config and"),
        ("main", "test", r"Unknown split \"test\". Should be one of \['train'\]; .* dataset_train_split choose$"),
    ],
)
def test_the_available_choices_are_listed(folder, config, split, words):
    with pytest.raises(ValueError, match=words) as caught:
        hub_rows(str(folder), config, split, str)
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_reported_with_its_cause(folder):
    (folder / "main" / "train.jsonl").write_text('{"prompt": "a"}\n{"promp')
    with pytest.raises(ValueError, match=r"cannot be loaded: .*JSON parse error") as caught:
        hub_rows(str(folder), "main", "train", str)
    assert "\n" not in str(caught.value)


def test_rows_without_a_prompt_are_reported_with_their_columns(folder):
    (folder / "main" / "train.jsonl").write_text('{"question": "a", "answer": "b"}\n')
    with pytest.raises(ValueError, match="sums: row 1 has no 'prompt' column; it has question, answer"):
        load_own(folder, {}, config="main")


def test_without_a_network_what_was_downloaded_before_does(folder):
    progress = []
    with pytest.raises(ValueError, match="it was not downloaded before, and the hub cannot be reached: no route"):
        hub_rows("sums", "main", "train", progress.append)
    assert progress == [f"asking {hub.address()} for sums", "loading dataset sums"]
    datasets.load_dataset(str(folder), "main")
    assert hub_rows("sums", "main", "train", str) == ROWS
    with pytest.raises(ValueError, match=r"config 'hard'.*, and the hub cannot be reached"):
        hub_rows("sums", "hard", "train", str)


def test_a_reader_of_a_format_is_no_dataset(tmp_path, monkeypatch):
    """That of pandas would unpickle what lies in this folder, a stranger's perhaps."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.pkl").write_bytes(b"cos\nsystem\n(S'touch it-ran'\ntR.")
    for name in ("pandas", "json"):
        with pytest.raises(ValueError, match=f"dataset '{name}' is the name of a file format; name the file itself"):
            load_own(name, {})
    assert not (tmp_path / "it-ran").exists()


def test_the_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=r"needs the library datasets .*: pip install datasets"):
        hub_rows("sums", None, "train", str)
