"""What each step of a script means, with a pretended presenter and engine that write down what they are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from rlplay.scenario.expect import ClaimResult
from rlplay.scenario.player import ScriptPlayer, begins_within
from rlplay.scenario.script import Ask, Write, parse

ASK = {"ask": {"question": "Up?", "choices": ["yes", "no"], "answer": "yes", "because": "It grows."}}
GROWS = {"expect": {"text": "Grows", "metric": "reward", "above": 0.35}}
WATCH = {"watch": {"say": "Up.", "metric": "reward", "above": 0.5}}
EXERCISE = {
    "exercise": {
        "say": "Make it grow.",
        "expect": [GROWS["expect"]],
        "hint": "Raise beta.",
        "solution": [{"set": {"beta": 0.5}}, {"update": 2}, "undo"],
    }
}


class Pretended:
    """A presenter and an engine, for a learner who does what is asked if `able`; an engine that `obeys`, or not."""

    def __init__(self, able: bool = False, obeys: bool = True) -> None:
        self.calls: list[Any] = []
        self.able, self.obeys = able, obeys
        self.update, self.under_way, self.asks = 3, False, list[int]()
        self.holds = True

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> None:
            self.calls.append((name, *given))

        async def called(*given: Any) -> bool:
            call(*given)
            return self.able if name == "turn" else self.obeys

        return call if name in ("say", "remark", "look") else called

    def check(self, claim: Any) -> ClaimResult:
        return ClaimResult(claim.text, self.holds, None, "")

    async def inquire(self, claims: Any) -> None:
        """It knows the answers."""

    def reveal(self, outcomes: list[ClaimResult], about: Any) -> None:
        words = about.question if isinstance(about, Ask) else None if about is None else about.text
        self.calls.append(("reveal", [each.text for each in outcomes], words))

    async def prefer(self, pair: int, choice: str) -> None:
        self.calls.append(("prefer", pair, choice))
        self.asks = self.asks[1:]


async def played(script: list[dict[str, Any]], stage: Pretended) -> list[Any]:
    player = ScriptPlayer(parse(script), stage, stage)  # type: ignore[arg-type]
    while player.action is not None and await player.play():
        pass
    assert player.finished == stage.obeys
    return [call if call[0] not in ("ask", "turn") else call[0] for call in stage.calls]


async def test_each_step_reaches_the_presenter_or_the_engine() -> None:
    script = [{"say": "Hello"}, {"lens": "credit"}, {"token": 2}, {"set": {"beta": 0.1}}, {"rewind": 0}, {"run": 2}]
    assert await played(script, Pretended()) == [
        ("say", "Hello"), ("look", "lens", "credit"), ("advance", "token", 2), ("set", {"beta": 0.1}), ("rewind", 0),
        ("advance", "update", 2),
    ]  # fmt: skip


async def test_an_undo_gives_up_the_update_under_way_or_takes_back_the_last() -> None:
    stage = Pretended()
    assert await played([{"undo": None}], stage) == [("rewind", 2)]
    stage.under_way = True
    assert (await played([{"undo": None}], stage))[1:] == [("rewind", 3)]


async def test_a_question_is_answered_by_the_claims_that_follow_it_or_before_the_next_words() -> None:
    you = {"you": {"say": "Press `u`.", "update": 1}}
    assert await played([ASK, you, GROWS, GROWS, GROWS], Pretended(able=True)) == [
        "ask", "turn", ("reveal", ["Grows"] * 3, "Up?"),
    ]  # fmt: skip
    quiz = await played([ASK, {"say": "Next."}, GROWS, ASK, ASK], Pretended())
    assert quiz == [
        "ask", ("reveal", [], "Up?"), ("say", "Next."), ("reveal", ["Grows"], None), "ask", ("reveal", [], "Up?"),
        "ask", ("reveal", [], "Up?"),
    ]  # fmt: skip


async def test_a_question_is_answered_before_something_is_to_be_written() -> None:
    write = {"write": {"say": "Write it.", "exercise": "kl"}}
    assert await played([ASK, write], Pretended()) == [
        "ask", ("reveal", [], "Up?"), ("write", Write("kl", "Write it.")),
    ]  # fmt: skip


async def test_what_the_learner_does_not_do_is_done_instead() -> None:
    you = {"you": {"say": "Press `u`.", "update": 1}}
    verdict = ("reveal", ["Grows"], "Make it grow.")
    assert await played([you, EXERCISE], Pretended(able=True)) == ["turn", "turn", verdict]
    assert await played([you, EXERCISE], Pretended()) == [
        "turn", ("advance", "update", 1), "turn", ("set", {"beta": 0.5}), ("advance", "update", 2), ("rewind", 2),
        verdict,
    ]  # fmt: skip


async def test_a_step_that_is_cut_short_is_still_to_be_done() -> None:
    for script in ([ASK], [{"run": 2}], [{"undo": None}], [EXERCISE]):
        stage = Pretended(obeys=False)
        player = ScriptPlayer(parse(script), stage, stage)  # type: ignore[arg-type]
        assert not await player.play()
        assert (player.at, player.asked) == (0, None)
        assert not any(call[0] == "reveal" for call in stage.calls)


async def test_labels_beyond_the_pairs_that_wait_are_left_over() -> None:
    stage = Pretended()
    stage.asks = [0, 2]
    assert await played([{"prefer": ["a", "b", "a"]}], stage) == [("prefer", 0, "a"), ("prefer", 2, "b")]
    assert (await played([{"prefer": "b"}], stage))[2:] == [("prefer", 0, "b")], "the engine says what is wrong"


async def test_what_waits_for_its_claim_is_said_once_and_before_the_next_words() -> None:
    stage = Pretended()
    player = ScriptPlayer(parse([WATCH, WATCH, {"say": "Over."}]), stage, stage)  # type: ignore[arg-type]
    stage.holds = False
    await player.play()
    player.speak_up()
    assert stage.calls == []
    stage.holds = True
    for _ in range(2):
        player.speak_up()
    assert stage.calls == [("remark", "Up.")]
    for _ in range(2):
        await player.play()
    player.speak_up()
    assert stage.calls[1:] == [("say", "Over.")]


@pytest.mark.parametrize("step", [{"phase": 1}, {"set": {"beta": 0.1}}, {"undo": None}, {"prefer": "a"}, EXERCISE])
def test_what_moves_the_engine_within_an_update_begins_there(step: dict[str, Any]) -> None:
    assert begins_within(parse([step])[0])
    if step is not EXERCISE:
        assert begins_within(parse([{"you": {"say": "Now you.", **step}}])[0])


@pytest.mark.parametrize("step", [{"run": 2}, {"say": "Hello"}, ASK, WATCH, {"lens": "credit"}, GROWS])
def test_whole_updates_and_what_is_only_shown_begin_anywhere(step: dict[str, Any]) -> None:
    stage = Pretended()
    action = ScriptPlayer(parse([step]), stage, stage).action  # type: ignore[arg-type]
    assert action is not None
    assert not begins_within(action)
