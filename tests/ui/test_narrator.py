"""The strip that shows the narration, a lesson and its questions."""

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Input

from rlplay.scenario.expect import ClaimResult
from rlplay.ui.format.keyed import keyed
from rlplay.ui.narrator.narrator import Narrator
from rlplay.ui.parts.panel_messages import Answered
from rlplay.ui.words.narration import Narration


class Strip(App):
    def __init__(self) -> None:
        super().__init__()
        self.choices = []

    def compose(self) -> ComposeResult:
        yield Input(id="elsewhere")
        yield Narrator(id="narrator")

    def on_answered(self, event: Answered) -> None:
        self.choices.append(event.choice)


async def test_only_backticks_are_markup():
    assert keyed("[b]`t`[/b] [@click=quit]x[/]").plain == "[b]t[/b] [@click=quit]x[/]"
    app = Strip()
    async with app.run_test(size=(80, 12)) as pilot:
        narrator = app.query_one(Narrator)
        narrator.say("[red]not markup[/red] [")
        await pilot.pause()
        assert "[red]not markup[/red] [" in narrator.render().plain


async def test_a_number_key_answers_and_the_focus_goes_back():
    app = Strip()
    async with app.run_test(size=(80, 12)) as pilot:
        narrator = app.query_one(Narrator)
        app.query_one("#elsewhere").focus()
        await pilot.pause()
        narrator.ask("Longer?", ["shorter", "longer"])
        await pilot.press("9", "2")
        assert app.choices == [1]
        assert "Your prediction: longer" in narrator.render().plain
        assert app.focused is app.query_one("#elsewhere")
        await pilot.press("1")
        assert app.choices == [1]


async def test_a_remark_stands_first_since_what_is_last_may_be_cut():
    app = Strip()
    async with app.run_test(size=(80, 12)):
        narrator = app.query_one(Narrator)
        narrator.narrate(Narration("Happened.", "`n` goes on.", ""))
        narrator.remark("Largest credit: +2.55")
        assert narrator.render().plain.split("\n") == ["Largest credit: +2.55", "Happened.", "n goes on."]


async def test_a_question_insists_on_its_answer():
    app = Strip()
    async with app.run_test(size=(80, 12)):
        narrator = app.query_one(Narrator)
        narrator.ask("Longer?", ["shorter", "longer", "neither"])
        for _ in range(2):
            narrator.insist()
            assert narrator.render().plain.startswith("▲ Press 1, 2 or 3 first")
            assert narrator.render().plain.count("▲") == 1
        narrator.action_choose(1)
        narrator.under_way(7, 25)
        assert "Your prediction: longer" in narrator.render().plain
        assert "update 7 of 25" in narrator.render().plain


@pytest.mark.parametrize(("wanted", "goes_on"), [("prediction", True), ("answer", False)])
async def test_only_after_a_prediction_is_there_something_to_watch(wanted, goes_on):
    app = Strip()
    async with app.run_test(size=(80, 12)):
        narrator = app.query_one(Narrator)
        narrator.ask("Longer?", ["shorter", "longer"], wanted)
        narrator.action_choose(1)
        assert ("now watch" in narrator.render().plain) == goes_on


async def test_what_does_not_fit_is_a_key_away():
    app = Strip()
    async with app.run_test(size=(60, 16)) as pilot:
        narrator = app.query_one(Narrator)
        claims = [ClaimResult(f"Claim {n}", True, 1.0, "0.344 → 30.9 (90×, expected > 10×) " * 2) for n in range(8)]
        narrator.say("You said it.", claims, "That was all.")
        await pilot.pause()
        assert "Claim 7" not in narrator.render().plain
        seen = narrator.render().plain
        assert "t next" in seen.split("\n")[-1]
        for _ in range(len(claims)):
            if not narrator.more():
                break
            page = narrator.render().plain
            assert page.count("\n") < narrator.size.height
            seen += page
        assert all(f"Claim {n}" in seen for n in range(8))
        assert seen.endswith("That was all.")


async def test_a_click_answers():
    app = Strip()
    async with app.run_test(size=(80, 12)) as pilot:
        narrator = app.query_one(Narrator)
        narrator.ask("Longer?", ["shorter", "longer"])
        await pilot.pause()
        line = narrator.render().plain.split("\n")[1]
        await pilot.click(narrator, offset=(line.index("longer") + 3, 1))
        assert app.choices == [1]


async def test_the_app_can_offer_a_key_when_the_strip_has_no_focus():
    app = Strip()
    async with app.run_test(size=(80, 12)):
        narrator = app.query_one(Narrator)
        assert not narrator.key_choice("1")
        narrator.ask("Longer?", ["shorter", "longer"])
        assert not narrator.key_choice("3")
        assert narrator.key_choice("1")


async def test_words_that_follow_end_the_question():
    app = Strip()
    async with app.run_test(size=(80, 12)) as pilot:
        narrator = app.query_one(Narrator)
        app.query_one("#elsewhere").focus()
        narrator.ask("Longer?", ["shorter", "longer"])
        narrator.say("Time is up.")
        await pilot.pause()
        assert not narrator.asking
        assert app.focused is app.query_one("#elsewhere")


async def test_a_lesson_is_not_talked_over():
    app = Strip()
    async with app.run_test(size=(80, 12)):
        narrator = app.query_one(Narrator)
        narrator.narrate(Narration("Sampled.", "`n` scores."))
        assert narrator.render().plain == "Sampled.\nn scores."
        narrator.say("Watch the length.")
        narrator.narrate(Narration("Scored.", "`n` goes on."))
        assert "Watch the length." in narrator.render().plain
        narrator.release()
        assert narrator.render().plain == "Scored.\nn goes on."


async def test_claims_are_shown_with_how_they_fared():
    app = Strip()
    async with app.run_test(size=(80, 12)):
        narrator = app.query_one(Narrator)
        narrator.say("", [ClaimResult("Longer", True, 9.5, "is 9.5"), ClaimResult("Better", False, 0.1, "is 0.1")])
        assert narrator.render().plain.split("\n")[:2] == ["✓ Longer: is 9.5", "✗ Better: is 0.1"]


async def test_a_warning_takes_a_line_and_a_colour():
    app = Strip()
    async with app.run_test(size=(80, 12)):
        narrator = app.query_one(Narrator)
        narrator.narrate(Narration("Done.", "next", "Every advantage is 0."))
        assert narrator.has_class("-warning")
        assert "▲ Every advantage is 0." in narrator.render().plain


LONG = "Update 4: reward 0.755 (+0.0938). On average, some tokens became likelier. KL of this update 0.0426."


@pytest.mark.parametrize(
    ("rows", "warning", "lines"),
    [
        (3, "", ["Update 4: reward 0.755 (+0.0938). On", "average, some tokens became likelier.",
                 "KL of this update 0.0426."]),
        (2, "", ["Update 4: reward 0.755 (+0.0938). On", "average, some tokens became likelier."]),
        (2, "Every ratio is off.", ["Update 4: reward 0.755 (+0.0938).", "▲ Every ratio is off."]),
        (1, "Every ratio is off.", ["▲ Every ratio is off."]),
        (5, "", ["Update 4: reward 0.755 (+0.0938). On", "average, some tokens became likelier.",
                 "KL of this update 0.0426.", "u goes on."]),
    ],
)  # fmt: skip
async def test_where_there_is_little_room_it_ends_with_a_sentence_and_warns(rows, warning, lines):
    app = Strip()
    async with app.run_test(size=(42, 12)) as pilot:
        narrator = app.query_one(Narrator)
        narrator.styles.height, narrator.styles.min_height = rows, rows
        narrator.narrate(Narration(LONG, "`u` goes on.", warning))
        await pilot.pause()
        width = narrator.content_size.width
        assert [line.plain.rstrip() for line in narrator.render().wrap(width)] == lines


async def test_a_warning_that_does_not_fit_loses_its_middle_and_keeps_what_to_do():
    app = Strip()
    async with app.run_test(size=(80, 35)) as pilot:
        narrator = app.query_one(Narrator)
        evidence = "Its log-probabilities differ by many nats in nearly every one of these tokens. " * 5
        narrator.narrate(Narration("Happened.", "", f"Old weights. {evidence}Set sampler_lag 0. `h` for details."))
        narrator.styles.height = 3
        await pilot.pause()
        said = narrator.render().plain
        assert said.startswith("▲ Old weights. Its log-probabilities")
        assert said.endswith("Set sampler_lag 0. h for details.")
        assert said.count("Its") < 5
