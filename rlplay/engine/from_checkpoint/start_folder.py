"""The model that a rebuilt run begins with: the weights of the reference with the tokenizer of the checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

from huggingface_hub import try_to_load_from_cache
from safetensors import safe_open
from safetensors.torch import save_file

from rlplay.engine.lora import ADAPTER_CONFIG, ADAPTER_WEIGHTS, DRAWN
from rlplay.foreign.from_checkpoint.plan import Plan

_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin", "pytorch_model*.bin.index.json")
_TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "merges.txt", "vocab.txt", "spiece.model", "chat_template.jinja",
)  # fmt: skip


def start_folder(plan: Plan, folder: Path) -> str:
    """What a scenario names as its model: `folder`, filled with links and small files, or the checkpoint itself.

    Adapters begin as they did, changing nothing, so that the model without them is the reference. Raises ValueError,
    one line, if they are DoRA's, and OSError if the folder cannot be written.
    """
    checkpoint = plan.checkpoint
    if not plan.model:
        return str(checkpoint.path)
    folder.mkdir(parents=True, exist_ok=True)
    if not checkpoint.base:
        _link(_folder_of(plan.model), checkpoint.path, folder)
        return str(folder)
    _link(_folder_of(plan.model), checkpoint.path, folder / "base")
    config = json.loads((checkpoint.path / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    if config.get("use_dora"):
        raise ValueError(f"{checkpoint.path.name}: its adapters are DoRA's, whose beginning cannot be rebuilt")
    config["base_model_name_or_path"] = str(folder / "base")
    (folder / ADAPTER_CONFIG).write_text(json.dumps(config), encoding="utf-8")
    with safe_open(checkpoint.path / ADAPTER_WEIGHTS, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    begun = {name: t if any(drawn in name for drawn in DRAWN) else t.zero_() for name, t in tensors.items()}
    save_file(begun, folder / ADAPTER_WEIGHTS)
    return str(folder)


def _folder_of(model: str) -> Path:
    """The folder of a model that is on this machine."""
    if Path(model).is_dir():
        return Path(model)
    return Path(str(try_to_load_from_cache(model, "config.json"))).parent


def _link(model: Path, checkpoint: Path, folder: Path) -> None:
    """Fill `folder` with links to a model's weights and configuration, and to the checkpoint's tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    own = any((checkpoint / name).is_file() for name in _TOKENIZER[:3])
    generation = next((each for each in (checkpoint, model) if (each / "generation_config.json").is_file()), model)
    files = [model / "config.json", generation / "generation_config.json"]
    files += [file for pattern in _WEIGHTS for file in model.glob(pattern) if file.name != ADAPTER_WEIGHTS]
    files += [(checkpoint if own else model) / name for name in _TOKENIZER]
    for file in files:
        if file.is_file():
            (folder / file.name).symlink_to(file.resolve())
