"""What does not fit together is found out at the start, in one line."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import accelerate
import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file

from rlplay import hub
from rlplay.engine.fit import check_fit
from rlplay.engine.model import LanguageModel, choose_device, load_model
from rlplay.tasks.task import Example, Task, chat

CPU = torch.device("cpu")
ROOM = 128  # what the micro model can read


@pytest.fixture
def lm(micro_model: Path) -> LanguageModel:
    return load_model(str(micro_model), CPU)


def task_of(*prompts: Any) -> Task:
    return Task(train=[Example(prompt, {}) for prompt in prompts])


def test_the_longest_prompt_and_a_completion_have_to_fit(lm: LanguageModel) -> None:
    text = "What is 2+2? " * 5
    room = ROOM - len(lm.prompt_ids(Example(text, {})))
    check_fit(lm, task_of("What", text), room)
    with pytest.raises(ValueError, match=f"--set max_completion_length={room} would fit"):
        check_fit(lm, task_of("What", text), room + 1)
    with pytest.raises(ValueError, match="use shorter prompts"):
        check_fit(lm, task_of(text * 20), 1)


def test_a_model_that_does_not_say_what_it_can_read_is_taken_at_its_word(lm: LanguageModel) -> None:
    with pytest.raises(ValueError, match="more than the 128"):
        check_fit(lm, task_of("What is 2+2?"), 10**6)
    lm.policy = SimpleNamespace(config=SimpleNamespace(get_text_config=SimpleNamespace))
    assert check_fit(lm, task_of("What is 2+2?"), 10**6) is None  # type: ignore[func-returns-value]


def test_prompts_have_tokens(lm: LanguageModel) -> None:
    with pytest.raises(ValueError, match="the prompt '' is empty"):
        check_fit(lm, task_of("What", ""), 8)


def test_chat_prompts_need_a_chat_template(lm: LanguageModel) -> None:
    check_fit(lm, task_of(chat("What is 2+2?")), 8)
    lm.tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(ValueError, match=r"does not take the prompt 'What is 2\+2\?': roles must alternate"):
        check_fit(lm, task_of(chat("What is 2+2?")), 8)
    lm.tokenizer.chat_template = None
    check_fit(lm, task_of("What is 2+2?"), 8)
    with pytest.raises(ValueError, match="no chat template; use a chat model"):
        check_fit(lm, task_of(chat("What is 2+2?")), 8)


def test_a_run_asks(start: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="the longest prompt has"):
        start(max_completion_length=ROOM)


def test_a_model_in_the_home_folder(micro_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copytree(micro_model, tmp_path / "mine")
    assert load_model("~/mine", CPU).vocabulary > 0


def test_a_model_downloaded_before_needs_no_network(
    micro_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "out_of_reach", lambda: "the hub cannot be reached: no route to host")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    progress: list[str] = []
    with pytest.raises(ValueError, match="it was not downloaded before, and the hub cannot be reached: no route"):
        load_model("me/micro", CPU, progress.append)
    assert progress == [f"asking {hub.address()} for me/micro"]
    kept = tmp_path / "models--me--micro"
    shutil.copytree(micro_model, kept / "snapshots" / ("0" * 40))
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("0" * 40)
    assert load_model("me/micro", CPU, progress.append).vocabulary > 0
    assert progress[1:] == [f"asking {hub.address()} for me/micro", "loading model me/micro"]
    (kept / "snapshots" / ("0" * 40) / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"could not be loaded: .+, and the hub cannot be reached: no route"):
        load_model("me/micro", CPU)


@pytest.mark.parametrize("damage", ["weights", "shapes"])
def test_a_damaged_model_is_reported_in_one_line(micro_model: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(micro_model, folder)
    if damage == "weights":
        (folder / "model.safetensors").write_bytes(b"no weights")
    else:
        config = (folder / "config.json").read_text()
        (folder / "config.json").write_text(config.replace('"intermediate_size": 64', '"intermediate_size": 72'))
    with pytest.raises(ValueError, match="could not be loaded") as caught:
        load_model(str(folder), CPU)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bringing", ["model", "configuration", "tokenizer"])
def test_code_that_a_model_brings_is_neither_run_nor_asked_about(
    micro_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    bringing: str,
) -> None:
    folder, trace = tmp_path / "mine", tmp_path / "it-ran"
    shutil.copytree(micro_model, folder)
    (folder / "own.py").write_text(f"open({str(trace)!r}, 'w')\nclass Own: ...\n")
    name = "tokenizer_config.json" if bringing == "tokenizer" else "config.json"
    content = json.loads((folder / name).read_text())
    content["auto_map"] = {
        "model": {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own"},
        "configuration": {"AutoConfig": "own.Own"},
        "tokenizer": {"AutoTokenizer": ["own.Own", None]},
    }[bringing]
    content |= {"tokenizer_class": "Own"} if bringing == "tokenizer" else {"model_type": "own"}
    (folder / name).write_text(json.dumps(content))
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda prompt="": asked.append(prompt) or "y")
    with pytest.raises(ValueError, match="it brings code of its own, which rlplay does not run; give") as caught:
        load_model(str(folder), CPU)
    assert "\n" not in str(caught.value)
    assert not asked
    assert not trace.exists()
    assert "custom code" not in capsys.readouterr().out


def test_a_folder_without_a_model_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="this folder holds no model, as it has no config"):
        load_model(str(tmp_path), CPU)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Makes this a machine with so many devices of a kind; what it returns lists those made current."""

    def made(kind: str, count: int) -> list[int]:
        current: list[int] = []
        has = SimpleNamespace(device_count=lambda: count, set_device=current.append)
        monkeypatch.setattr(accelerate, "PartialState", lambda cpu: SimpleNamespace(device="cpu" if cpu else kind))
        monkeypatch.setattr(torch, "get_device_module", lambda device: has)
        return current

    return made


@pytest.mark.parametrize(
    ("found", "count", "there"),
    [
        ("cpu", 0, "use auto or cpu"),
        ("cuda", 1, "use auto, cpu or cuda"),
        ("cuda", 4, "use auto, cpu, cuda or cuda:0 to cuda:3"),
    ],
)
@pytest.mark.parametrize("wanted", ["xpu", "cuda:4", "mps:0"])
def test_a_missing_device_is_reported_with_the_available_ones(
    machine: Callable[..., list[int]], found: str, count: int, there: str, wanted: str
) -> None:
    machine(found, count)
    with pytest.raises(ValueError, match=f"^device '{wanted}' is not available here; {there}$"):
        choose_device(wanted)


def test_a_numbered_device_is_the_one_used(machine: Callable[..., list[int]]) -> None:
    current = machine("cuda", 2)
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    assert current == [1]
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda")
    assert choose_device("cuda:0") == torch.device("cuda", 0)
    assert choose_device("cpu") == torch.device("cpu")
    assert current == [1]


def _weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, {"format": "pt"})


def _config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _pickled(folder: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (folder / "it-ran",)

    (folder / "model.safetensors").unlink()
    torch.save({"x": Trap()}, folder / "pytorch_model.bin")


def _sharded(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {"model.embed_tokens.weight": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


BROKEN: dict[str, Callable[[Path], None]] = {
    "a size below 0": lambda folder: _config(folder, hidden_size=-32),
    "a size that is text": lambda folder: _config(folder, hidden_size="wide"),
    "layers that are a list": lambda folder: _config(folder, num_hidden_layers=[2]),
    "no layers' number": lambda folder: _config(folder, num_attention_heads=None),
    "heads that do not divide": lambda folder: _config(folder, num_attention_heads=0),
    "a vocabulary of another size": lambda folder: _config(folder, vocab_size=7),
    "an unknown kind": lambda folder: _config(folder, model_type="nothing"),
    "a list for a config": lambda folder: (folder / "config.json").write_text("[1]") and None,
    "levels of lists": lambda folder: (folder / "config.json").write_text("[" * 100_000) and None,
    "a pickle": _pickled,
    "a shard that is missing": _sharded,
    "a weight that is missing": lambda folder: _weights(folder, lambda w: dict(list(w.items())[1:])),
    "weights that are all 0": lambda folder: _weights(folder, lambda w: {k: v * 0 for k, v in w.items()}),
    "weights that are no numbers": lambda folder: _weights(folder, lambda w: {k: v * math.nan for k, v in w.items()}),
    "weights of another shape": lambda folder: _weights(folder, lambda w: {k: v[:1].clone() for k, v in w.items()}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_is_refused_in_one_line(name: str, micro_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(micro_model, folder)
    BROKEN[name](folder)
    with pytest.raises(ValueError, match="could not be loaded") as caught:
        load_model(str(folder), torch.device("cpu"))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700
    assert not (folder / "it-ran").exists()
