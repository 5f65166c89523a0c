"""Values that are typed in the knobs; numbers without a field opened first, previewed before they are accepted."""

from textual.widgets import Input, Static

from rlplay.ui.knobs.knob_list import KnobSearch
from tests.ui.test_knobs import Host, frame, go_to


async def test_typing_a_value_and_a_wrong_one():
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        go_to(screen, "learning_rate")
        await pilot.press("enter", *"fast", "enter")
        assert "a number from 0 to 1, e.g. 0.0004; got 'fast'" in str(screen.query_one(Static).render())
        assert screen.query_one("#value", Input).has_class("-typing")
        assert frame(screen) == ("Knobs", "enter accept · esc cancel"), "letters are typed"
        await pilot.press(*["backspace"] * 4, *"1e-3", "enter")
        assert not screen.query_one("#value", Input).has_class("-typing")
        assert "a apply" in frame(screen)[0]
        assert "← → 0-9 change" in frame(screen)[1]
        await pilot.press("a")
        assert app.outcome == {"learning_rate": 1e-3}


async def test_a_digit_types_a_number_and_is_previewed_before_it_is_accepted():
    app = Host()
    async with app.run_test(size=(120, 35)) as pilot:
        screen = app.screen
        go_to(screen, "beta")
        await pilot.press(".", "3")
        await pilot.pause()
        assert screen.draft.differing() == {"beta": 0.3}
        assert app.drafts[-1] == {"beta": 0.3}
        await pilot.press("escape")
        assert not screen.draft.differing()
        assert app.drafts[-1] == {}
        await pilot.press(".", "3", "enter", "a")
        assert app.outcome == {"beta": 0.3}


async def test_a_search_that_goes_on_with_a_number_types_it():
    app = Host()
    async with app.run_test(size=(120, 35)) as pilot:
        screen = app.screen
        for typed in ("b.3", "beta .3"):
            await pilot.press(*typed)
            await pilot.pause()
            assert screen.draft.differing() == {"beta": 0.3}
            assert screen.query_one(KnobSearch).value == typed[: typed.index(".")].strip()
            await pilot.press("escape", "escape")
            assert not screen.draft.differing()
        await pilot.press("k", "3")
        assert screen.sought == "k3", "what an estimator is called"
        await pilot.press("escape")


async def test_a_digit_changes_no_choice():
    app = Host()
    async with app.run_test(size=(120, 35)) as pilot:
        screen = app.screen
        go_to(screen, "algorithm")
        await pilot.press("3")
        assert not screen.query_one("#value", Input).has_class("-typing")
        go_to(screen, "num_generations")
        await pilot.press("enter", *"ab", "escape")
        assert not screen.draft.differing()
