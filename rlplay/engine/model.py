"""A causal language model ready to be trained: policy, frozen reference, tokenizer, device."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from rlplay import hub
from rlplay.algorithms.settings import Settings
from rlplay.engine import ranks
from rlplay.engine.linear import use_faster_products
from rlplay.engine.lora import ADAPTER_CONFIG, FrozenAdapters, base_of, has_adapters, with_adapters, with_saved_adapters
from rlplay.engine.weights import Weights
from rlplay.paths import POCKET_PATH
from rlplay.processes import threads_each
from rlplay.scenario.names import looks_like_folder
from rlplay.tasks.task import Example, Message
from rlplay.trace.text import quote

Kind = Literal["tree", "shared", "padded", "by_length"]
"""How a forward pass lays prompts and completions out, see `passes.py`."""


_PLAIN = Weights()


@dataclass
class LanguageModel:
    """The policy that is trained and the reference it started as, with what both need.

    Both stay in eval mode: dropout would make two passes over the same tokens disagree, and the ratio would not
    start at 1 (`numerics.md`, pitfall 5). `passes` and `cached` say how the model is run: which kind of forward pass
    scores given tokens, and whether sampling keeps a cache (`passes.py`, `decode.py`; `agreement.py` decides).
    """

    policy: Any
    reference: Any
    tokenizer: Any
    device: torch.device
    end_ids: frozenset[int]
    passes: Kind = "shared"
    otherwise: Kind = "shared"
    """The kind for texts whose beginnings make no good tree."""
    cached: bool = True
    fixed: bool = False
    """Whether sampling keeps a cache of fixed size."""
    fixed_steps: dict[Hashable, Any] = field(default_factory=dict)
    """Such caches, with what continues them."""
    rows_at_once: int = 0
    """Completions that one pass takes; 0: as many as it may have logits."""
    cacheless: Kind | None = None
    """Which kind of pass, without a shared cache, may run its layers again; None if none gives the right gradient."""
    checkpointing: bool = False
    """Whether a pass that is differentiated keeps the layers' inputs alone."""
    retokenizes: bool = False
    """Whether training sees turns as the chat template writes them, so that sampling need not."""
    agreed: int = 0
    """Positions, prompt included, up to which sampling and scoring were seen to agree."""
    remarks: list[str] = field(default_factory=list)
    """What the user should know of how the model is run, until it is told."""
    chat_template_kwargs: dict[str, Any] = field(default_factory=dict)
    """What the chat template is given besides the messages."""
    tools: list[Callable[..., Any]] = field(default_factory=list)
    """What the model may call; their schemas are in every prompt."""
    pieces: dict[int, str] = field(default_factory=dict)
    began: Any = None
    """The policy as the stage began, where the reference has moved since; else that is the reference itself."""

    @property
    def start(self) -> Any:
        """The policy as the run or the stage began."""
        return self.reference if self.began is None else self.began

    @cached_property
    def hidden_size(self) -> int:
        """Width of the last hidden state, which the value head reads; OPT-350m's is narrower than its config says."""
        with torch.no_grad():
            out = self.policy(
                input_ids=torch.zeros(1, 1, dtype=torch.long, device=self.device), output_hidden_states=True
            )
        return int(out.hidden_states[-1].shape[-1])

    def run_as(self, settings: Settings) -> None:
        """Let passes be as the settings say; an update begins with it."""
        self.rows_at_once = settings.per_device_train_batch_size
        self.checkpointing = settings.gradient_checkpointing
        self.retokenizes = settings.retokenize_turns

    def save_memory(self) -> None:
        """Keep no caches between batches from now on."""
        self.fixed = False
        self.fixed_steps.clear()

    def is_reference(self) -> bool:
        """Whether the policy has the reference's weights, bit for bit, as at the beginning of a run or a stage.

        Then both are one function, whose values are not compared but known to be equal: two passes that are laid out
        differently would leave a difference of 1e-6 nats, and Adam makes a full step of the smallest gradient.
        """
        return same_weights(self.policy, self.reference, self.device)

    @property
    def vocabulary(self) -> int:
        """Number of logits per position."""
        return int(self.policy.get_output_embeddings().weight.shape[0])

    @property
    def context(self) -> int:
        """Tokens that the model can read, as its configuration says; very many where it does not."""
        longest = getattr(self.policy.config.get_text_config(), "max_position_embeddings", None)
        return longest if isinstance(longest, int) and longest > 0 else 1 << 30

    @property
    def pad_id(self) -> int:
        """The id used for padding; any id does, since padding is always masked by position, never by id."""
        pad = self.tokenizer.pad_token_id
        return int(pad if pad is not None else min(self.end_ids, default=0))

    def prompt_ids(self, example: Example) -> list[int]:
        """Token ids of a prompt: messages through the chat template, plain text as it is.

        A text that is imitated as a whole has an empty prompt: the token with which texts begin, if the tokenizer has
        one, else that with which they end.
        """
        if isinstance(example.prompt, str):
            ids = list(self.tokenizer(example.prompt)["input_ids"])
            begins = [i for i in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id) if i is not None]
            return ids or (begins[:1] if example.chosen is not None else [])
        text = self.templated(example.prompt, add_generation_prompt=True)
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def templated(self, messages: list[Message], add_generation_prompt: bool = False) -> str:
        """The messages as the chat template writes them."""
        return str(
            self.tokenizer.apply_chat_template(
                messages,
                tools=self.tools or None,
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                **self.chat_template_kwargs,
            )
        )

    def decode(self, ids: list[int]) -> str:
        """The text a reward function sees: special tokens left out."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def piece(self, token_id: int) -> str:
        """The text of one token alone, special tokens included."""
        if token_id not in self.pieces:
            self.pieces[token_id] = str(self.tokenizer.decode([token_id], skip_special_tokens=False))
        return self.pieces[token_id]

    def texts(self, ids: list[int]) -> list[str]:
        """One string per token; joined they are the decoded text. A character cut in two shows at its last token."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        if backend is None:
            return [self.piece(i) for i in ids]
        from tokenizers.decoders import DecodeStream

        stream = DecodeStream(skip_special_tokens=False)
        return [stream.step(backend, i) or "" for i in ids]


def same_weights(one: Any, other: Any, device: torch.device) -> bool:
    """Whether two models on a device have the same weights, bit for bit."""
    both = [*one.named_parameters()], [*other.named_parameters()]
    if len(both[0]) != len(both[1]):
        return False
    pairs = [(own, its) for (_, own), (_, its) in zip(*both, strict=True) if own is not its]
    if any(own.shape != its.shape or own.dtype != its.dtype for own, its in pairs):
        return False
    if device.type == "cpu" or not pairs:
        return all(torch.equal(own, its) for own, its in pairs)
    # Each question is a wait for the device. Most often the first answer is no, and else one asks of all others.
    return torch.equal(*pairs[0]) and not bool(torch.stack([(own != its).any() for own, its in pairs]).any())


def choose_device(wanted: str) -> torch.device:
    """`auto` is the accelerator that accelerate finds (CUDA, MPS, …), else the CPU; `cuda:1` is the second of several.

    Raises ValueError, one line, if the named device is not there.
    """
    from accelerate import PartialState

    found = torch.device(PartialState(cpu=wanted == "cpu").device)
    if wanted in ("auto", found.type, str(found)):
        return found
    kind, _, number = wanted.partition(":")
    several = 0 if found.type == "cpu" else torch.get_device_module(found).device_count()
    if kind == found.type and number.isdecimal() and int(number) < several:
        if int(number):  # for libraries whose kernels run on the current device, whatever their tensors are on
            torch.get_device_module(found).set_device(int(number))
        return torch.device(kind, int(number))
    there = ["auto", "cpu", *([found.type] if several else [])]
    there += [f"{found.type}:0 to {found.type}:{several - 1}"] if several > 1 else []
    raise ValueError(f"device {quote(wanted)} is not available here; use {', '.join(there[:-1])} or {there[-1]}")


def set_threads(threads: int | None) -> int:
    """CPU threads for torch: `threads`, or all cores but one, which the screen needs; without a screen too, so that
    the same run gives the same numbers bit for bit. Several processes of a run share the cores. Returns the number.
    """
    chosen = threads or threads_each(ranks.on_this_machine())
    torch.set_num_threads(chosen)
    return chosen


def load_model(
    name: str, device: torch.device, progress: Callable[[str], object] = str, weights: Weights = _PLAIN,
    first: Callable[[Any], object] = id,
) -> LanguageModel:  # fmt: skip
    """The bundled model for "pocket", else any causal language model that transformers can load, or adapters of one.

    `progress`, `weights`, `first` and errors are as in `load_pretrained`.
    """
    return wrap(*load_pretrained(name, progress, weights, first), device)


def load_pretrained(
    name: str, progress: Callable[[str], object] = str, weights: Weights = _PLAIN,
    first: Callable[[Any], object] = id,
) -> tuple[Any, Any]:  # fmt: skip
    """The model and the tokenizer that `name` stands for, on the CPU, with the adapters that `weights` ask for.

    `progress` is called with a description of each step, `first` with the configuration before weights are read.
    Raises ValueError, one line, if there is no such model or it
    is not a causal language model.
    """
    from huggingface_hub import try_to_load_from_cache
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # the terminal belongs to the screen
    path = str(POCKET_PATH) if name == "pocket" else str(Path(name).expanduser()) if looks_like_folder(name) else name
    if looks_like_folder(name) and not Path(path).is_dir():
        raise ValueError(f"model {quote(name)}: no such folder; give a folder with config.json, or a Hugging Face name")
    if (Path(path) / ADAPTER_CONFIG).is_file():
        policy, tokenizer = load_pretrained(base_of(Path(path)), progress, replace(weights, use_peft=False), first)
        return with_saved_adapters(policy, Path(path)), tokenizer
    if Path(path).is_dir() and not (Path(path) / "config.json").is_file():
        raise ValueError(
            f"model {quote(name)}: this folder holds no model, as it has no config.json; give one that does"
        )
    here, problem = Path(path).is_dir(), ""
    try:
        if not here:
            progress(f"asking {hub.address()} for {name}")
            problem = hub.out_of_reach()
            here = isinstance(try_to_load_from_cache(name, "config.json"), str)
            if problem and not here:
                raise OSError("it was not downloaded before")
        progress(f"loading model {name}" if here else f"downloading model {name}, which may take minutes")
        only_kept = bool(problem)
        given: dict[str, Any] = {"local_files_only": only_kept, "trust_remote_code": False}  # left out, it would ask
        tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left", **given)
        first(AutoConfig.from_pretrained(path, **given))
        policy, loaded = AutoModelForCausalLM.from_pretrained(
            path, dtype=getattr(torch, weights.dtype), output_loading_info=True, **given
        )
        _check_weights(policy, loaded)
    except Exception as error:  # a folder of somebody else's makes these libraries raise anything
        reason = str(error).strip().partition("\n")[0].rstrip(".: ")[:300] or type(error).__name__
        if not isinstance(error, (OSError, ValueError, ImportError, SafetensorError)):
            reason = f"{type(error).__name__}: {reason}"
        if "trust_remote_code" in str(error):
            reason = "it brings code of its own, which rlplay does not run"
        reason += f", and {problem}" if problem else ""
        raise ValueError(
            f"model {quote(name)} could not be loaded: {reason}; give a folder with a model, or check name and "
            "connection"
        ) from error
    return with_adapters(policy, weights) if weights.use_peft else policy, tokenizer


def _check_weights(policy: Any, loaded: dict[str, Any]) -> None:
    """Raises ValueError, a few words, if weights are missing, of another shape, all 0, or not finite."""
    for kind, words in ("missing_keys", "has no weights for"), ("mismatched_keys", "has weights of another shape for"):
        if names := sorted(str(each[0] if isinstance(each, tuple) else each) for each in loaded.get(kind) or ()):
            raise ValueError(f"it {words} {names[0]}" + (f" and {len(names) - 1} others" if names[1:] else ""))
    parameters = [parameter.detach() for parameter in policy.parameters()]
    if not any(bool(parameter.any()) for parameter in parameters if parameter.ndim > 1):
        raise ValueError("all of its weights are 0")
    if not all(bool(parameter.sum(dtype=torch.float32).isfinite()) for parameter in parameters):
        raise ValueError("some of its weights are not finite numbers")


def wrap(policy: Any, tokenizer: Any, device: torch.device) -> LanguageModel:
    """A loaded model and its tokenizer as a LanguageModel; the reference is the policy as it is, frozen.

    It is a copy, but of adapters alone where only they are trained.
    """
    policy = policy.to(device).eval()
    use_faster_products(policy, device)
    reference = FrozenAdapters(policy) if has_adapters(policy) else copy.deepcopy(policy).requires_grad_(False)
    ends = policy.generation_config.eos_token_id if policy.generation_config is not None else None
    ends = ends if ends is not None else tokenizer.eos_token_id
    end_ids = frozenset(ends if isinstance(ends, list) else [] if ends is None else [ends])
    return LanguageModel(policy, reference, tokenizer, device, end_ids)


POLICY = "policy."
"""What the names of the policy's parameters begin with."""

VALUE = "value."
"""What the names of the value head's parameters begin with."""


def trainable(lm: LanguageModel, value_head: nn.Module) -> dict[str, Tensor]:
    """Every tensor an update may change, by a stable name; tied weights once."""
    named = {f"{POLICY}{name}": p for name, p in lm.policy.named_parameters() if p.requires_grad}
    return named | {f"{VALUE}{name}": p for name, p in value_head.named_parameters()}
