"""The probe's screen: bars, samples, values, its keys and its typed prompt."""

from __future__ import annotations

import pytest
from textual.widgets import Input, Static

from rlplay.link.messages import EndProbe, Failed
from rlplay.trace.questions import Continue, Continued, Estimate, Estimated, Peek, Peeked, Prefix
from rlplay.ui.format.bars import horizontal, moved
from rlplay.ui.probe.columns import read_columns
from rlplay.ui.probe.probe_panels import ProbeBars, ProbeTails, ProbeText, described
from rlplay.ui.probe.probe_screen import ENDED, REPLAYED, ProbeScreen
from rlplay.ui.session.probing import SAMPLES, TAILS
from tests.ui.probed import SIZES, answer, begun, opened, peeked, tail
from tests.ui.stage import all_text, on_screen, playground, pressed, settled, text_of


@pytest.mark.parametrize(
    ("text", "columns"),
    [("answer: 4", {"answer": 4}), ("a: x, b: [1, 2]", {"a": "x", "b": [1, 2]}), ("", None), ("  ", None)],
)
def test_columns_are_read(text: str, columns: object) -> None:
    assert read_columns(text) == columns


@pytest.mark.parametrize("text", ["answer", "answer: [", "4: 4", "}{"])
def test_columns_that_cannot_be_read_say_how(text: str) -> None:
    assert "answer: 4" in str(read_columns(text))


@pytest.mark.parametrize(
    ("value", "bar"), [(0, "    "), (1, "████"), (0.5, "██  "), (0.001, "    "), (0.01, "▏   "), (0.4, "█▋  ")]
)
def test_bars_are_as_long_as_the_probability(value: float, bar: str) -> None:
    assert horizontal(value, 4) == bar


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        (0.5, 0.5, ("████", "", "    ")),
        (0.25, 0.75, ("██", "████", "  ")),
        (0.75, 0.25, ("██", "", "░░░░  ")),
        (0.5, 0.45, ("███▋", "", "    ")),
        (0.05, 0.06, ("▌", "", "       ")),
        (0.0, 1.0, ("", "████████", "")),
        (1.0, 0.0, ("", "", "░░░░░░░░")),
    ],
)
def test_one_bar_shows_what_an_update_added_and_took(old: float, new: float, parts: tuple[str, str, str]) -> None:
    assert moved(old, new, 8) == parts


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (0, "after update 3 · "),
        (1, "after update 3 and 1 step of the next · "),
        (2, "after update 3 and 2 steps of the"),
    ],
)
def test_the_weights_asked_are_named(steps: int, words: str) -> None:
    probing = begun()
    probing.take(peeked(probing.prefix, steps=steps))
    assert described(probing).plain.startswith(words)


@pytest.mark.parametrize("size", SIZES)
async def test_the_bars_of_reference_and_policy_stand_side_by_side(size: tuple[int, int]) -> None:
    async with on_screen(size=size) as (_, source, pilot):
        screen, asked = await opened(pilot, source)
        bars = screen.query_one(ProbeBars)
        assert "Waiting for the engine" in " ".join(text_of(bars).split())
        assert isinstance(asked[0], Peek)
        assert len(asked[0].prefix.answer) == 2
        await answer(pilot, source, peeked(asked[0].prefix))
        lines = all_text(bars).split("\n")
        assert lines[0].split() == ["reference", "policy", "now"]
        row = next(line for line in lines if "seven" in line)
        assert row.index(".25") < row.index(".50")
        assert '"[bold]␛' in all_text(bars), "model text is shown and not obeyed"
        assert "<.01" in next(line for line in lines if "<|end|>" in line)
        assert "entropy 1.50 → 1.25 nats" in all_text(bars)
        assert "KL to reference 0.125" in all_text(bars)
        assert "⟨user⟩How many?" in all_text(screen.query_one(ProbeText))
        head = str(screen.query_one(Static).visual)
        assert "after update 3" in head
        assert "answers earn a reward" in head


@pytest.mark.parametrize("size", SIZES)
async def test_samples_and_the_value_with_interval_and_count_are_shown(size: tuple[int, int]) -> None:
    async with on_screen(size=size) as (_, source, pilot):
        screen, asked = await opened(pilot, source)
        prefix = asked[0].prefix
        await answer(pilot, source, peeked(prefix))
        tails = screen.query_one(ProbeTails)
        await pilot.press("N")
        assert asked[-1].count == TAILS
        await answer(pilot, source, Continued(prefix, tails=[tail(7, 9), tail(8, reward=None, truncated=True)]))
        assert " 1.00  policy      seven∎" in all_text(tails)
        assert "[bold]␛…" in all_text(tails)
        await pilot.press("V")
        assert asked[-1] == Estimate(prefix, "policy", SAMPLES)
        values = {"mean": 0.25, "low": 0.125, "high": 0.5, "interval": "Wilson", "unscored": 2}
        await answer(pilot, source, Estimated(prefix, count=32, **values))
        assert "n = 32, 2 more without a score …" in all_text(tails)
        await answer(pilot, source, Estimated(prefix, count=256, done=True, **values))
        assert "0.250  95 % 0.125 … 0.500 (Wilson)" in all_text(tails)
        assert "n = 256, 2 more without a score" in all_text(tails)
        await pilot.press("right")
        await answer(pilot, source)
        assert "0.250" not in all_text(tails), "that was another beginning"


async def test_keys_force_and_regenerate_and_leave() -> None:
    async with on_screen(size=SIZES[0]) as (app, source, pilot):
        screen, asked = await opened(pilot, source)
        before = asked[0].prefix.answer
        await answer(pilot, source, peeked(asked[0].prefix))
        await pilot.press("down", "enter")
        chosen = screen.probing.answer[-1]
        assert chosen in (7, 8, 9)
        assert [type(question) for question in asked[1:]] == [Peek, Continue]
        assert asked[-1].prefix.answer == [*before, chosen]
        await answer(pilot, source, peeked(asked[-1].prefix), Continued(asked[-1].prefix, tails=[tail(7, 7)]))
        assert all_text(screen.query_one(ProbeText)).endswith("seven seven")
        await pilot.press("V", "escape")
        assert asked[-1] == EndProbe(), "nobody waits for it any more"
        assert app.screen is app.panels.main


async def test_the_mouse_chooses_places_and_candidates() -> None:
    async with on_screen(size=SIZES[0]) as (_, source, pilot):
        screen, asked = await opened(pilot, source)
        await answer(pilot, source, peeked(asked[0].prefix))
        await pilot.click(ProbeBars, offset=(6, 4))
        assert screen.probing.rank == 2
        await pilot.click(ProbeText, offset=(2, 3))
        await settled(pilot)
        assert screen.probing.place == 0
        assert asked[-1].prefix.answer == []


async def test_while_the_run_goes_on_the_bars_follow() -> None:
    async with on_screen(size=SIZES[0]) as (_, source, pilot):
        _, asked = await opened(pilot, source)
        await answer(pilot, source, peeked(asked[0].prefix))
        count = len(asked)
        source.status(2)
        await answer(pilot, source)
        assert asked[count:] == [asked[0]]
        source.status(2)
        await answer(pilot, source)
        assert len(asked) == count + 1, "once for each update"


async def test_without_an_answer_on_the_screen_one_types_a_prompt() -> None:
    async with on_screen(size=SIZES[2]) as (app, source, pilot):
        await settled(pilot)
        await pressed(pilot, "i")
        assert app.focused is app.screen.query_one("#prompt", Input)
        assert "to type a prompt" in " ".join(text_of(app.screen.query_one(ProbeText)).split())
        await pilot.press(*"Hi", "space", *"v", "enter")
        assert source.commands[-1] == Peek(Prefix("Hi v"))
        await answer(pilot, source, peeked(Prefix("Hi v"), unrewarded="no columns"))
        assert "no reward: no columns" in str(app.screen.query_one(Static).visual)
        await pilot.press("M")
        assert source.commands[-1] == Peek(Prefix("Hi v", plain=True))
        await pilot.press("equals_sign", *"answer", "colon", "space", "4", "enter")
        assert source.commands[-1] == Peek(Prefix("Hi v", columns={"answer": 4}, plain=True))
        await pilot.press("tab", "escape")
        assert isinstance(app.screen, ProbeScreen), "escape ends the typing first"


@pytest.mark.parametrize("size", SIZES)
async def test_letters_are_text_in_the_prompt_and_keys_at_the_tokens(size: tuple[int, int]) -> None:
    async with on_screen(size=size) as (app, source, pilot):
        screen, asked = await opened(pilot, source)
        text, frame = screen.query_one(ProbeText), screen.query_one("Vertical")
        assert app.focused is text
        assert "tab type a prompt" in text._border_title.plain
        await pilot.press("tab")
        assert app.focused is screen.query_one("#prompt")
        assert text._border_title.plain == "Text · tab back"
        assert "typing a prompt" in frame._border_subtitle.plain
        await pilot.press(*"say ,gu?", "enter")
        assert [type(question) for question in asked] == [Peek, Peek], "no letter was taken for a key"
        assert asked[-1] == Peek(Prefix("say ,gu?"))
        assert app.focused is text
        await answer(pilot, source, peeked(asked[-1].prefix))
        await pilot.press("N")
        assert asked[-1] == Continue(Prefix("say ,gu?"), "policy", TAILS, draw=1)


@pytest.mark.parametrize("size", SIZES)
async def test_letters_that_are_no_key_say_where_they_are_typed_and_never_reach_the_run(size: tuple[int, int]) -> None:
    async with on_screen(size=size) as (app, source, pilot):
        screen, asked = await opened(pilot, source)
        await answer(pilot, source, peeked(asked[0].prefix))
        for key in ("i", "h", "u", "J"):
            await pilot.press(key)
            assert app.screen is screen
            assert "N, V, H, D and M are commands here; press tab to type." in str(screen.query_one(Static).visual)
        assert {type(command) for command in source.commands} == {Peek}
        await pilot.press("tab", "escape")
        assert app.focused is screen.query_one(ProbeText), "escape ends the typing first"
        assert "letters" not in str(screen.query_one(Static).visual)
        await pilot.press("i", "down")
        await answer(pilot, source)
        assert "letters" not in str(screen.query_one(Static).visual), "something else was done"
        await pilot.press("escape")
        assert app.screen is app.panels.main


@pytest.mark.parametrize("size", SIZES)
async def test_why_there_is_no_reward_is_read_to_its_end(size: tuple[int, int]) -> None:
    async with on_screen(size=size) as (_, source, pilot):
        screen, asked = await opened(pilot, source)
        why = "an episode with an environment can't be continued mid-way"
        await answer(pilot, source, peeked(asked[0].prefix, unrewarded=why))
        assert "mid-way" in " ".join(text_of(screen.query_one(Static)).split())


async def test_what_the_engine_refuses_stands_in_the_panel() -> None:
    async with on_screen(size=SIZES[1]) as (_, source, pilot):
        screen, asked = await opened(pilot, source)
        await answer(pilot, source, Peeked(asked[0].prefix, refused="the prompt [red]is\x1b empty"))
        assert "the prompt [red]is␛ empty" in str(screen.query_one(Static).visual)


@pytest.mark.parametrize(("live", "words"), [(False, REPLAYED), (True, ENDED)])
async def test_without_an_engine_it_says_what_to_do(live: bool, words: str) -> None:
    app, source = playground()
    source.live = source.own_engine = live
    async with app.run_test(size=SIZES[2]) as pilot:
        source.update(1)
        if live:
            source.put(Failed("gone"))
        await settled(pilot)
        source.commands.clear()
        await pressed(pilot, "i")
        shown = " ".join(text_of(app.screen.query_one(ProbeBars)).split())
        assert shown == words.replace("`", "")
        await pilot.press("N", "V", "D", "enter", "tab", "right")
        assert source.commands == []
        await pilot.press("escape")
        assert app.screen is app.panels.main


async def test_a_script_names_prompt_and_what_to_ask_for() -> None:
    async with on_screen(1, size=SIZES[0]) as (app, source, pilot):
        await app.play.perform("probe", {"prompt": "Hi", "columns": {"answer": 4}, "then": "value"})
        await settled(pilot)
        assert source.commands[-2:] == [
            Peek(Prefix("Hi", columns={"answer": 4})),
            Estimate(Prefix("Hi", [], {"answer": 4})),
        ]
        await pilot.press("escape")
        await app.play.perform("probe", {"completion": 2, "token": 1})
        await settled(pilot)
        assert len(source.commands[-1].prefix.answer) == 1


async def test_help_lists_the_probe_and_its_keys() -> None:
    async with on_screen(size=SIZES[0]) as (app, source, pilot):
        await opened(pilot, source)
        await pressed(pilot, "question_mark")
        statics = "\n".join(str(each.visual) for each in app.screen.query(Static))
        assert "force the candidate" in statics
