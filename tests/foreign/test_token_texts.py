"""Tokens of which the files hold only ids have texts if their tokenizer lies beside the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models

from rlplay.foreign.token_texts import TokenTexts
from tests.foreign.grown import lines
from tests.foreign.nemo_files import batch, write
from tests.foreign.slime_files import samples, trained, write_rollout, write_rows
from tests.foreign.test_files import updates_of
from tests.foreign.test_open_instruct import rows


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def tokenizer(path: Path, size: int) -> None:
    """A tokenizer whose token N is the letter of that number, or a part of one."""
    pieces = {chr(0x4E00 + i): i for i in range(size)}
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Tokenizer(models.WordLevel(pieces, unk_token=chr(0x4E00)))
    made.decoder = decoders.Fuse()
    made.save(str(path))


def expected(ids: list[int]) -> str:
    return "".join(chr(0x4E00 + i) for i in ids)


@pytest.mark.parametrize("place", ["tokenizer.json", "tokenizer/tokenizer.json"])
def test_beside_nemo_rls_files(place: str, tmp_path: Path) -> None:
    columns = batch(1)
    del columns["content"]
    write(tmp_path / "run", 1, columns)
    tokenizer(tmp_path / "run" / place, 200)
    sampled = updates_of(tmp_path / "run")[1].sampled
    assert "".join(sampled.texts) == expected(sampled.token_ids.tolist())
    assert sampled.prompts == [expected([11, 12, 13]), expected([11, 12, 14])]
    assert "".join(sampled.prompt_texts) == expected(sampled.prompt_ids.tolist())


def test_beside_a_dump_whose_prompts_have_texts(tmp_path: Path) -> None:
    write_rollout(tmp_path / "run", 0, samples(0))
    write_rows(tmp_path / "run", 0, trained(0))
    tokenizer(tmp_path / "run" / "tokenizer" / "tokenizer.json", 20_000)
    sampled = updates_of(tmp_path / "run")[1].sampled
    assert sampled.prompts == ["What is 0?", "What is 1?"]
    assert sampled.texts[0] == f"⟨{sampled.token_ids[0]}⟩", "one of its tokens is not in the vocabulary"


def test_of_the_model_that_the_files_name(tmp_path: Path) -> None:
    folder = tmp_path / "rollouts"
    lines(folder / "exp_rollouts_000000.jsonl", rows(1), 100)
    tokenizer(tmp_path / "model" / "tokenizer.json", 50)
    (folder / "exp_metadata.jsonl").write_text(json.dumps({"model_name": str(tmp_path / "model")}) + "\n")
    sampled = updates_of(folder)[1].sampled
    assert "".join(sampled.texts) == expected(sampled.token_ids.tolist())


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"model": {"type": "WordLevel"}}', "\x00"])
def test_another_file_is_no_tokenizer(content: str, tmp_path: Path) -> None:
    write(tmp_path / "run", 1, batch(1))
    (tmp_path / "run" / "tokenizer.json").write_text(content)
    sampled = updates_of(tmp_path / "run")[1].sampled
    assert sampled.texts[0] == f"⟨{sampled.token_ids[0]}⟩"


@pytest.mark.parametrize("name", ["", "unknown model", "nobody/none", "../..", "/dev/null", "a/b/c/d"])
def test_a_name_of_nothing_is_no_tokenizer(name: str, tmp_path: Path) -> None:
    assert TokenTexts(tmp_path, name)._tokenizer is None
