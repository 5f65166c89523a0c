"""Tool calls in the model's own format: offered in its prompts, read from its turns."""

from __future__ import annotations

import importlib
import inspect
from contextlib import suppress
from typing import Any

import msgspec

from rlplay.engine.model import LanguageModel
from rlplay.tasks.task import Message
from rlplay.tasks.tools import Call, Tools

_CALL = {"type": "function", "function": {"name": "f", "arguments": {}}}
_ASKED: list[Message] = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "", "tool_calls": [_CALL]}]


def offer(lm: LanguageModel, tools: Tools) -> None:
    """Put the tools into every prompt of `lm`, and let it read calls.

    The tokenizer says how its model writes calls; where it does not, TRL knows many models', and where a chat template
    writes an earlier turn differently once more follows, TRL has one that does not. Raises ValueError, one line, if
    a tool has no schema, or model or library cannot do it.
    """
    from transformers.utils import get_json_schema

    offered = tools.offered()
    for function in offered:
        try:
            get_json_schema(function)
        except Exception as error:  # it reads docstrings and type hints, and raises several kinds of its own
            what = " ".join(str(error).split())
            raise ValueError(f"tool {function.__name__!r} has no schema: {what}") from None
    tokenizer = lm.tokenizer
    if tokenizer.chat_template is None:
        raise ValueError("tools need a model with a chat template; this one has none")
    if "tools" not in inspect.signature(tokenizer.parse_response).parameters:
        raise ValueError("tools need transformers 5.15 or newer: pip install -U transformers")
    _complete(tokenizer)
    lm.tools = offered
    if lm.templated(_ASKED[:1]) == str(tokenizer.apply_chat_template(_ASKED[:1], tokenize=False)):
        raise ValueError("this model's chat template has no place for tools; choose a model that was trained with them")


def _complete(tokenizer: Any) -> None:
    """What a tokenizer lacks for calls, from TRL if that is installed."""
    helper = None
    with suppress(ImportError):
        helper = importlib.import_module("trl.chat_template_utils")
    if getattr(tokenizer, "response_template", None) is None:
        with suppress(AttributeError, ValueError, NotImplementedError):
            tokenizer.response_template = helper.add_response_schema(tokenizer).response_template  # type: ignore[union-attr]
    if getattr(tokenizer, "response_template", None) is None:
        known = "" if helper else "; TRL knows those of Qwen, Llama and others: pip install trl"
        raise ValueError(f"this model's tokenizer has no response_template, so its calls cannot be read{known}")
    if helper is not None:
        with suppress(Exception):  # templates are programs of the model's; an episode says what does not fit
            if not helper.is_chat_template_prefix_preserving(tokenizer):
                tokenizer.chat_template = helper.get_training_chat_template(tokenizer)


def parsed(lm: LanguageModel, ids: list[int], before: list[int]) -> tuple[Message, list[Call]]:
    """A turn of the model as a message, and its calls; `before` are the ids up to the turn.

    Text that cannot be read as calls is the text of the message, as in TRL.
    """
    try:
        message = dict(lm.tokenizer.parse_response(ids, prefix=before, tools=lm.tools))
        calls = [_call(each) for each in message.get("tool_calls") or []]
    except (ValueError, TypeError, KeyError, AttributeError, msgspec.ValidationError):
        return {"role": "assistant", "content": lm.decode(ids)}, []
    text = str(message.get("content") or "").removesuffix(lm.tokenizer.eos_token or "")
    return {**message, "role": "assistant", "content": text}, calls


def _call(written: dict[str, Any]) -> Call:
    function = written.get("function", written)
    return msgspec.convert({"name": function["name"], "arguments": function.get("arguments") or {}}, Call)
