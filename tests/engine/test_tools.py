"""Tools and environments with tools, as TRL 1.16 has them: offered, called, read, rewarded."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoTokenizer

from rlplay.containment import OwnError
from rlplay.engine import sample as sampling
from rlplay.engine.batch import Prompts
from rlplay.engine.driver import Driver
from rlplay.engine.episodes import turns
from rlplay.engine.model import LanguageModel, load_model
from rlplay.engine.state import Halt
from rlplay.engine.tool_calls import offer, parsed
from rlplay.paths import POCKET_PATH
from rlplay.tasks.own_rewards import load_tools
from rlplay.tasks.task import Example, chat
from rlplay.tasks.tools import Call, Tools
from rlplay.trace.records import AnyRecord, Credited, Finished, Sampled, Scored
from tests.cli.trl_script import with_trl

pytestmark = pytest.mark.usefixtures("trusts_all")

TEMPLATE = """\
{% if tools %}<|user|>Tools: {% for tool in tools %}{{ tool | tojson }} {% endfor %}<|end|>{% endif %}\
{% for m in messages %}\
{% if m.role == 'assistant' %}<|assistant|>{{ m.content }}\
{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|end|>\
{% elif m.role == 'tool' %}<|user|>Result of {{ m.name }}: {{ m.content }}<|end|>\
{% else %}<|user|>{{ m.content }}<|end|>{% endif %}{% endfor %}\
{% if add_generation_prompt %}<|assistant|>{% endif %}"""
RESPONSE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|assistant|>",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>", "close_pattern": "</tool_call>", "repeats": True, "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<\|end\|>", "content": "text"},
    },
}  # fmt: skip
SOURCE = '''
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: one
        b: two
    """
    return a + b

async def later(a: int) -> str:
    """Wait.

    Args:
        a: one
    """
    return f"{a}!"

def undocumented(a: int) -> int:
    return a

def long(a: int, b: int) -> str:
    """Talk.

    Args:
        a: one
        b: two
    """
    return "x" * 10**7

def longest(completions, **columns):
    return [float(max(len(message["content"]) for message in completion)) for completion in completions]

class Counter:
    def reset(self, **row):
        self.count = 0
        return f" Begin with {row['answer']}."

    def more(self, by: int) -> int:
        """Count on.

        Args:
            by: how much
        """
        self.count += by
        return self.count

    def get_reward(self) -> float:
        return float(self.count)

class Fickle(Counter):
    told = 0

    def reset(self, **row):
        Fickle.told += 1
        return f" {Fickle.told}"

class NoReset:
    pass

def seen(completions, **columns):
    seen.completions = completions
    return [float(len(c)) for c in completions]
'''
CALL = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'
MORE = '<tool_call>{"name": "more", "arguments": {"by": 4}}</tool_call>'


@pytest.fixture
def tools_model(tmp_path: Path) -> Path:
    """The bundled model with a chat template that knows tools, and what reads calls."""
    folder = tmp_path / "model"
    shutil.copytree(POCKET_PATH, folder)
    tokenizer = AutoTokenizer.from_pretrained(POCKET_PATH)
    tokenizer.chat_template, tokenizer.response_template = TEMPLATE, RESPONSE
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., Tools]:
    """The tools of `SOURCE` by their names, and a factory."""
    (tmp_path / "own.py").write_text(SOURCE)

    def made(*names: str, factory: str | None = None) -> Tools:
        file = tmp_path / "own.py"
        return load_tools([f"{file}:{name}" for name in names], factory and f"{file}:{factory}")

    return made


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets every completion say the same turns."""

    def say(*turns: str) -> None:
        class Scripted:
            at: Tensor | None = None

            def __init__(self, lm: LanguageModel, _prompts: Prompts, group: Tensor, _length: int, _slate: None) -> None:
                words = [i for turn in turns for i in lm.tokenizer(turn, add_special_tokens=False)["input_ids"]]
                self._left = [[*words] for _ in group]
                self._vocabulary = lm.vocabulary

            @property
            def logits(self) -> Tensor:
                logits = torch.zeros(len(self._left), self._vocabulary)
                for row, left in enumerate(self._left):
                    logits[row, left[0] if left else 0] = 50.0
                return logits

            def keep(self, rows: Tensor) -> None:
                self._left = [self._left[row] for row in rows.tolist()]

            def step(self, tokens: Tensor) -> None:
                for left, token in zip(self._left, tokens.tolist(), strict=True):
                    if left and left[0] == token:
                        left.pop(0)

        monkeypatch.setattr(sampling, "decoder", Scripted)
        monkeypatch.setattr(sampling, "agree", lambda _lm, _batch: True)

    return say


@pytest.fixture
def play(start: Callable[..., tuple[Driver, list[AnyRecord]]], tools_model: Path, tmp_path: Path) -> Callable[..., Any]:
    """Plays one update with tools by name; gives its records by their kind."""
    (tmp_path / "own.py").write_text(SOURCE)

    def one(*names: str, reward: str = "seen", factory: str | None = None, **settings: Any) -> dict[type, Any]:
        file = tmp_path / "own.py"
        given: dict[str, Any] = {"model": str(tools_model), "tools": [f"{file}:{name}" for name in names]}
        given |= {"reward": [f"{file}:{reward}"] if reward else []}
        if factory is not None:
            given["environment_factory"] = f"{file}:{factory}"
        driver, records = start(scenario=given, max_completion_length=200, num_prompts=2, **settings)
        driver.advance("update", 1, lambda: False)
        driver.close()
        return {type(record): record for record in records}

    return one


def test_a_call_is_answered_and_the_answer_goes_on(play: Callable[..., Any], scripted: Callable[..., None]) -> None:
    scripted(f"Wait. {CALL}<|end|>", "Five.<|end|>")
    records = play("add")
    sampled: Sampled = records[Sampled]
    first = "".join(sampled.texts[: sampled.offsets[1]])
    assert first == f"Wait. {CALL}<|end|><|user|>Result of add: 5<|end|><|assistant|>Five.<|end|>"
    written = [
        text for text, own in zip(sampled.texts, sampled.mask[: sampled.offsets[1]].tolist(), strict=False) if not own
    ]
    assert "".join(written) == "<|user|>Result of add: 5<|end|><|assistant|>"
    assert '"description": "Add two numbers."' in "".join(sampled.prompt_texts[: sampled.prompt_offsets[1]])
    scored: Scored = records[Scored]
    assert scored.rewards.tolist() == [3.0] * len(scored.rewards)
    finished: Finished = records[Finished]
    assert finished.metrics["tools/call_frequency"] == 1
    assert finished.metrics["tools/failure_frequency"] == 0


@pytest.mark.parametrize(("rounds", "answered"), [(0, 0), (1, 1), (2, 2), (None, 2)])
def test_after_the_last_round_a_call_ends_the_answer(
    play: Callable[..., Any], scripted: Callable[..., None], rounds: int | None, answered: int
) -> None:
    scripted(f"{MORE}<|end|>", f"{MORE}<|end|>", "Nine.<|end|>")
    records = play(factory="Counter", reward="", max_tool_calling_iterations=rounds)
    sampled: Sampled = records[Sampled]
    first = "".join(sampled.texts[: sampled.offsets[1]])
    assert first.count("Result of more") == answered
    assert first.endswith("Nine.<|end|>" if answered == 2 else f"{MORE}<|end|>")
    assert not sampled.truncated.any()
    assert records[Finished].metrics["tools/call_frequency"] == answered


def test_an_error_in_a_tool_is_its_result(play: Callable[..., Any], scripted: Callable[..., None]) -> None:
    wrong = CALL.replace('"b": 3', '"c": 3')
    scripted(f'{wrong}<tool_call>{{"name": "gone"}}</tool_call><|end|>', "Oh.<|end|>")
    records = play("add")
    sampled: Sampled = records[Sampled]
    first = "".join(sampled.texts[: sampled.offsets[1]])
    assert "Result of add: {'error': \"add() got an unexpected keyword argument 'c'\"}" in first
    assert "Result of gone: {'error': 'Tool gone not found.'}" in first
    finished: Finished = records[Finished]
    assert (finished.metrics["tools/call_frequency"], finished.metrics["tools/failure_frequency"]) == (2, 1)


def test_of_an_endless_result_only_the_beginning_is_read(
    play: Callable[..., Any], scripted: Callable[..., None]
) -> None:
    scripted(f"{CALL.replace('add', 'long')}<|end|>", "Oh.<|end|>")
    records = play("long", reward="longest")
    assert records[Scored].rewards.tolist() == [100_000.0] * len(records[Scored].rewards)
    assert records[Sampled].truncated.all()


def test_an_environment_begins_is_called_and_scores(play: Callable[..., Any], scripted: Callable[..., None]) -> None:
    scripted(f"{MORE}<|end|>", f"{MORE}<|end|>", "Nine.<|end|>")
    records = play(factory="Counter", reward="")
    sampled: Sampled = records[Sampled]
    assert all(" Begin with " in prompt for prompt in sampled.prompts)
    first = "".join(sampled.texts[: sampled.offsets[1]])
    assert first.index("Result of more: 4<") < first.index("Result of more: 8<")
    scored: Scored = records[Scored]
    assert scored.parts["Counter"].tolist() == [8.0] * len(scored.rewards)
    assert scored.weights == {"correct": 1, "mentioned": 1, "Counter": 1}


def test_an_environment_of_tools_is_brought_to_where_it_was(
    play: Callable[..., Any], scripted: Callable[..., None]
) -> None:
    """Whoever goes on says the whole script again: after a first call of 4 the count ends at 8, and so on."""
    scripted(f"{MORE}<|end|>", "Nine.<|end|>")
    records = play(
        factory="Counter",
        reward="",
        returns="vine",
        baseline="none",
        scale_rewards="none",
        vine_samples=2,
        reward_weights={"Counter": 1},
    )
    sampled, credited = records[Sampled], records[Credited]
    end = int(sampled.offsets[1])
    first, second = (begin for begin, _ in turns(sampled.mask[:end].astype(bool).tolist()))
    assert credited.values[[first, second]].tolist() == [4.0, 8.0]
    assert credited.advantages[[first, second]].tolist() == [4.0, -4.0]
    assert records[Scored].rewards.tolist() == [4.0] * len(sampled.group)


def test_a_reset_that_changes_its_mind_stops_the_run(play: Callable[..., Any], scripted: Callable[..., None]) -> None:
    scripted("Nine.<|end|>")
    with pytest.raises(Halt, match="reset says something else for the same row each time"):
        play(factory="Fickle", reward="seen")


def test_asynchronous_tools(own: Callable[..., Tools]) -> None:
    answering = own("later").begin(Example(chat("?"), {}))
    assert answering.replies([Call("later", {"a": 7})]) == [{"role": "tool", "name": "later", "content": "7!"}]


def test_unreadable_calls_are_text(tools_model: Path, own: Callable[..., Tools]) -> None:
    lm = load_model(str(tools_model), torch.device("cpu"))
    offer(lm, own("add"))
    for text in ('<tool_call>{"name"</tool_call>', "<tool_call>[1]</tool_call>", '<tool_call>{"name": 3}</tool_call>'):
        ids = lm.tokenizer(f"{text}<|end|>", add_special_tokens=False)["input_ids"]
        assert parsed(lm, ids, []) == ({"role": "assistant", "content": text}, [])


@pytest.mark.parametrize(
    ("names", "factory", "problem"),
    [
        (("undocumented",), None, "tool 'undocumented' has no schema: "),
        (("add", "add"), None, "two tools are called 'add'; rename one of them"),
        ((), "NoReset", "NoReset makes environments without a method reset"),
        (("gone",), None, "no function 'gone'; it has add, later"),
    ],
)
def test_mistakes_are_one_line(
    tools_model: Path, own: Callable[..., Tools], names: tuple[str, ...], factory: str | None, problem: str
) -> None:
    lm = load_model(str(tools_model), torch.device("cpu"))
    with pytest.raises((ValueError, OwnError)) as raised:
        offer(lm, own(*names, factory=factory))
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_model_without_tools_is_refused(own: Callable[..., Tools]) -> None:
    lm = load_model("pocket", torch.device("cpu"))
    with pytest.raises(ValueError, match="tokenizer has no response_template, so its calls cannot be read"):
        offer(lm, own("add"))
    lm.tokenizer.response_template = RESPONSE
    with pytest.raises(ValueError, match="chat template has no place for tools"):
        offer(lm, own("add"))


@with_trl
def test_what_follows_a_call_is_as_in_trl(
    tools_model: Path, play: Callable[..., Any], scripted: Callable[..., None]
) -> None:
    from trl import GRPOTrainer

    scripted(f"{CALL}<|end|>", "Five.<|end|>")
    sampled: Sampled = play("add")[Sampled]
    tokenizer = AutoTokenizer.from_pretrained(tools_model)
    trainer = SimpleNamespace(
        _is_vlm=False, processing_class=tokenizer, _tokenizer=tokenizer, chat_template=None, chat_template_kwargs={}
    )
    message = {"role": "tool", "name": "add", "content": "5"}
    theirs = GRPOTrainer._get_tool_suffix_ids(trainer, [message])
    ours = sampled.token_ids[: sampled.offsets[1]][sampled.mask[: sampled.offsets[1]] == 0]
    assert ours.tolist() == theirs
