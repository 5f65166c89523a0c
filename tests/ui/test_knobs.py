"""The panel that changes settings: keys, search, what it shows of each setting, and what it hands over."""

import asyncio

import pytest
from textual.app import App
from textual.containers import VerticalScroll
from textual.css.stylesheet import Stylesheet
from textual.widgets import OptionList, Static

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.knobs import KNOBS, matching
from rlplay.algorithms.setting_values import choices
from rlplay.scenario.loader import load
from rlplay.scenario.share import shared_in
from rlplay.ui.knobs.draft import Draft
from rlplay.ui.knobs.knob_list import KnobList, KnobSearch
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from rlplay.ui.knobs.setting_line import row
from rlplay.ui.parts.panel_messages import Drafted
from tests.ui.stage import PATIENCE, on_screen, pressed, until

CHOSEN = resolve({"algorithm": "grpo"})


class Host(App):
    def __init__(self, live: bool = True) -> None:
        super().__init__()
        self.live = live
        self.outcome = "open"
        self.drafts = []

    def on_mount(self) -> None:
        self.push_screen(KnobsScreen(CHOSEN, load("learn-to-think"), self.live), self.done)

    def done(self, changes) -> None:
        self.outcome = changes

    def on_drafted(self, event: Drafted) -> None:
        self.drafts.append(event.changes)


def go_to(screen: KnobsScreen, name: str) -> None:
    listed = screen.query_one(KnobList)
    listed.highlighted = listed.get_option_index(name)


def frame(screen: KnobsScreen) -> tuple[str, str]:
    """What its upper and its lower line say."""
    panel = screen.query_one("Vertical")
    return panel._border_title.plain, panel._border_subtitle.plain


async def test_what_changes_would_do_may_be_known_before_the_panel_is_there():
    app, screen = App(), KnobsScreen(CHOSEN, load("learn-to-think"))
    screen.tell(["Of these 9 tokens, none would get a different gradient."])
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(screen)
        await pilot.pause()
        assert "none would get a different gradient" in str(screen.query_one(Static).render())


async def test_stepping_and_applying_hands_over_the_changes():
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        go_to(app.screen, "temperature")
        await pilot.press("right", "right", "a")
        assert app.outcome == {"temperature": 1.2}


async def test_an_algorithm_says_what_it_changes():
    app = Host()
    async with app.run_test(size=(120, 44)) as pilot:
        for _ in range(2):
            go_to(app.screen, "algorithm")
            chosen = PRESETS[app.screen.draft.value("algorithm")]
            await pilot.pause()
            assert chosen.changes in str(app.screen.query_one(Static).render())
            await pilot.press("right")


async def test_a_preview_that_comes_before_the_screen_is_there_is_shown_once_it_is():
    async with on_screen(1, size=(80, 24)) as (app, _, pilot):
        app.tuning.open()
        app.tuning.knobs.tell(["No preview yet."])
        await until(pilot, lambda: app.screen is app.tuning.knobs and app.screen.is_mounted)
        app.tuning.knobs.tell(["No preview yet."])
        assert "No preview yet." in str(app.tuning.knobs.query_one(Static).render())


async def test_what_does_not_fit_is_not_applied():
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        go_to(screen, "returns")
        await pilot.press("left", "a")
        assert app.outcome == "open"
        assert "GAE bootstraps" in str(screen.query_one(Static).render())
        await pilot.press("z", "escape")
        assert app.outcome is None


async def test_escape_stops_typing_first_and_then_cancels():
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter", "escape")
        assert app.outcome == "open"
        await pilot.press("right", "escape")
        assert app.outcome is None


async def test_changed_settings_are_marked_with_what_they_were():
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        go_to(screen, "epsilon")
        await pilot.press("right")
        row = str(screen.query_one(OptionList).get_option("epsilon").prompt)
        assert row.startswith("● Clip ε")
        assert "0.25" in row
        assert "was 0.2" in row
        assert "--set epsilon=0.25" in str(screen.query_one(Static).render())


def under_cursor(app) -> tuple[str, list[str]]:
    screen = app.screen
    return screen.name_under_cursor, [option.id for option in screen.query_one(KnobList).options]


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_letters_find_a_setting_by_name_or_meaning(size):
    app = Host()
    async with app.run_test(size=size) as pilot:
        for keys, name in (
            ("be", "beta"),
            ("β", "beta"),
            ("/adv", "scale_rewards"),
            ("/al", "algorithm"),
            ("learning", "learning_rate"),
            ("tzx", None),
            ("drift", "beta"),
            ("vf", "vf_coef"),
        ):
            await pilot.press(*("slash" if key == "/" else key for key in keys))
            here, listed = under_cursor(app)
            if name is None:
                assert f"no setting matches “{keys}”" in str(app.screen.query_one(Static).render())
            else:
                assert here == name == listed[0], keys
                assert len(listed) < len(KNOBS) / 2, keys
            await pilot.press("escape")
            assert app.outcome == "open", "it ends the search only"


def test_titles_come_before_names_and_both_before_meanings():
    def first(typed: str, count: int) -> list[str]:
        return [knob.name for knob in matching(typed)[:count]]

    assert first("i", 1) == ["num_iterations"], "Iterations, before importance_sampling_level"
    assert KNOBS[first("u", 1)[0]].title.startswith("U")
    assert first("u", len(KNOBS)).index("use_bias_correction_kl") > first("u", len(KNOBS)).index("undesirable_weight")
    assert first("rate", 1) == ["learning_rate"]
    assert first("lam", 1) == ["lam"]
    assert first("lr", 1) == ["learning_rate"]


def test_a_title_is_parted_from_its_value():
    draft, longest = Draft(resolve({})), max(KNOBS.values(), key=lambda knob: len(knob.title))
    assert row(draft, longest, 60).plain.startswith(f"  {longest.title:<20} ")


@pytest.mark.parametrize("size", [(160, 45), (120, 35), (80, 24)])
async def test_the_reason_why_a_setting_has_no_effect_is_shown_in_full(size):
    app = Host()
    async with app.run_test(size=size) as pilot:
        go_to(app.screen, "epsilon")
        await pilot.pause()
        row = app.screen.query_one(KnobList).get_option("epsilon").prompt.plain
        assert row.endswith("no effect")
        assert len(row) <= app.screen.query_one(KnobList).scrollable_content_region.width
        text = str(app.screen.query_one(Static).render())
        assert "No effect now: there is only one optimizer step per batch." in text


async def test_what_was_found_is_changed_and_applied_and_escape_shows_all_again():
    app = Host()
    async with app.run_test(size=(120, 35)) as pilot:
        await pilot.press("b", "e", "right", "down")
        assert app.screen.draft.differing() == {"beta": 0.05}
        assert under_cursor(app)[0] != "beta", "the list has the keys again"
        await pilot.press("escape")
        here, listed = under_cursor(app)
        assert len([name for name in listed if name]) > 20
        assert here in listed
        await pilot.press("a")
        assert app.outcome == {"beta": 0.05}


async def test_enter_after_finding_types_a_value():
    app = Host()
    async with app.run_test(size=(120, 35)) as pilot:
        await pilot.press(*"beta", "enter", *"0.2", "enter")
        assert app.screen.draft.differing() == {"beta": 0.2}


async def test_the_letters_of_verbs_find_as_long_as_there_is_nothing_to_do():
    app = Host()
    async with app.run_test(size=(120, 35)) as pilot:
        assert "type to search" in app.screen.title_line
        await pilot.press(*"adam")
        assert app.outcome == "open"
        assert under_cursor(app)[0] == "learning_rate"
        await pilot.press("right")
        assert "`a` apply" in app.screen.title_line
        await pilot.press("a")
        assert app.outcome == {"learning_rate": 6e-4}


async def test_settings_of_other_algorithms_are_found_too():
    app = Host()
    async with app.run_test(size=(120, 35)) as pilot:
        await pilot.press(*"sapo")
        assert under_cursor(app)[1][:2] == ["sapo_temperature_pos", "sapo_temperature_neg"]
        assert "No effect now: only with surrogate=sapo" in str(app.screen.query_one(Static).render())


async def test_every_setting_can_be_reached():
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        seen = set()
        for _ in KNOBS:
            seen.add(app.screen.name_under_cursor)
            await pilot.press("down")
        assert seen == {name for name in KNOBS if not app.screen.draft.foreign(name)}
        assert app.screen.query_one(VerticalScroll).region.bottom <= 24


async def test_settings_of_other_algorithms_come_and_go_with_them():
    app = Host()
    async with app.run_test(size=(120, 44)) as pilot:
        screen, listed = app.screen, app.screen.query_one(KnobList)

        def shown() -> list[str | None]:
            return [option.id for option in listed.options]

        assert "sapo_temperature_pos" not in shown()
        go_to(screen, "surrogate")
        async with asyncio.timeout(PATIENCE):
            while screen.draft.value("surrogate") != "sapo":
                await pilot.press("right")
        assert screen.name_under_cursor == "surrogate"
        assert "sapo_temperature_pos" in shown()
        go_to(screen, "sapo_temperature_pos")
        await pilot.press("right")
        go_to(screen, "surrogate")
        await pilot.press("z")
        assert "sapo_temperature_pos" in shown(), "it is changed, so it is not hidden"
        assert "sapo_temperature_neg" not in shown()


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_copying_the_command_is_confirmed_inside_the_panel(size):
    app = Host()
    async with app.run_test(size=size) as pilot:
        go_to(app.screen, "beta")
        await pilot.press("right", "y")
        text = str(app.screen.query_one(Static).render())
        assert "Copied" in text
        assert "beta=0.05" in app.clipboard
        assert not app._notifications, "a toast would cover the keys"
        await pilot.press("down")
        assert "Copied" not in str(app.screen.query_one(Static).render())


async def test_a_recorded_run_can_be_looked_at_and_copied_only():
    app = Host(live=False)
    async with app.run_test(size=(160, 45)) as pilot:
        go_to(app.screen, "beta")
        assert "apply" not in app.screen.query_one("Vertical").border_subtitle
        await pilot.press("right", "a")
        assert app.outcome == "open"
        assert "cannot be changed; y copies" in str(app.screen.query_one(Static).render())
        await pilot.press("y", "escape")
        assert "beta=0.05" in app.clipboard
        assert app.outcome is None


async def test_the_share_code_of_what_is_set_is_shown_and_copied():
    app = Host()
    async with app.run_test(size=(160, 45)) as pilot:
        go_to(app.screen, "beta")
        await pilot.press("right")
        code = app.screen.reproduction.code(app.screen.draft.settings)[0]
        assert code in str(app.screen.query_one(Static).render())
        await pilot.press("ctrl+y")
        assert app.clipboard == code
        assert shared_in(code).settings["beta"] == 0.05


@pytest.mark.parametrize("size", [(160, 45), (120, 35), (80, 24)])
async def test_choices_that_do_not_fit_are_counted_and_listed_below(size):
    app = Host()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.pause()
        listed = app.screen.query_one(KnobList)
        for name in ("surrogate", "baseline", "kl_estimator", "aggregation"):
            go_to(app.screen, name)
            await pilot.pause()
            row = listed.get_option(name).prompt.plain
            assert len(row) <= listed.scrollable_content_region.width, "nothing is cut without a word"
            every = " | ".join(choices(name))
            below = str(app.screen.query_one(Static).render())
            cut = not row.endswith(every)
            assert cut == (f"can be: {every}" in below)
            assert not cut or " more" in row or " choices" in row
        assert "k1 | k2 | k3 | abs | full" in listed.get_option("kl_estimator").prompt.plain


async def test_switches_are_on_or_off_and_taken_in_every_spelling():
    app = Host()
    async with app.run_test(size=(120, 44)) as pilot:
        screen = app.screen
        go_to(screen, "dynamic_sampling")
        row = screen.query_one(KnobList).get_option("dynamic_sampling").prompt.plain
        assert " off " in row
        assert row.endswith("on | off")
        for typed, taken in (("yes", True), ("Off", False), ("true", True), ("no", False), ("on", True)):
            await pilot.press("enter", *typed, "enter")
            assert screen.draft.value("dynamic_sampling") is taken
        assert "was off" in screen.query_one(KnobList).get_option("dynamic_sampling").prompt.plain
        await pilot.press("y")
        assert "--set dynamic_sampling=true" in app.clipboard, "as in a file"
        await pilot.press("enter", *"perhaps", "enter")
        assert "dynamic_sampling is on or off; got 'perhaps'" in str(screen.query_one(Static).render())


async def test_while_finding_the_frame_says_how_to_change_and_to_apply():
    app = Host()
    async with app.run_test(size=(120, 35)) as pilot:
        await pilot.press("b")
        assert under_cursor(app)[0] == "beta"
        assert frame(app.screen)[0] == "Knobs · ← → or enter change · then a apply"


async def test_the_list_has_the_focus_at_once(monkeypatch):
    """Taking it from the search line would style and check the line three times more."""
    styled, apply = [], Stylesheet.apply

    def note(self, node, **more):
        styled.append(type(node))
        apply(self, node, **more)

    monkeypatch.setattr(Stylesheet, "apply", note)
    app = Host()
    async with app.run_test(size=(80, 24)):
        assert isinstance(app.screen.focused, KnobList)
        assert styled.count(KnobSearch) == 1, "as the screen opened"


async def test_the_knobs_open_on_what_the_focused_curve_is_about_or_where_they_were_left():
    async with on_screen(1, size=(160, 45)) as (app, _, pilot):
        await pressed(pilot, "k")
        assert app.screen.name_under_cursor == "algorithm"
        await pressed(pilot, "down", "escape")
        await app.play.perform("curve", "kl")
        await pressed(pilot, "k")
        assert app.screen.name_under_cursor == "beta"
        await pilot.press("escape")
        app.panels.tokens.focus()
        await pressed(pilot, "k")
        assert app.screen.name_under_cursor == "beta"
