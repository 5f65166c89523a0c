"""What the palette offers, and that it can close at any time."""

import pytest
from textual.command import CommandPalette
from textual.widgets import Input, OptionList

from rlplay.ui.command_palette import closeness, useful_now
from tests.ui.stage import on_screen, pressed, settled, until

WIDE = (160, 45)


async def found(pilot, typed: str) -> list[str]:
    """What the palette offers for what is typed."""
    await pilot.press("ctrl+p")
    palette = pilot.app.screen
    listed = palette.query_one(OptionList)
    await until(pilot, lambda: palette.has_class("-ready"))
    palette.query_one(Input).value = typed  # at once, so that the palette searches once
    await pilot.pause()
    await until(pilot, lambda: all(worker.is_finished for worker in pilot.app.workers if worker.node is palette))
    return [str(listed.get_option_at_index(place).prompt).split("\n")[0] for place in range(listed.option_count)]


async def test_a_search_that_ends_once_the_palette_closes_finds_its_list_gone():
    async with on_screen(size=WIDE) as (app, _, pilot):
        await found(pilot, "kl")
        palette = app.screen
        listed = palette.query_one(OptionList)
        await palette.query_one("#--container").remove()  # as happens when it closes
        palette._show_busy = True
        palette._refresh_command_list(listed, [], clear_current=True)
        await settled(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not palette)


async def test_the_palette_finds_knobs_curves_and_statistics_by_name():
    async with on_screen(1, size=WIDE) as (app, _, pilot):
        offered = await found(pilot, "kl")
        for words in (
            "Colour: KL to reference (ref_kl)",
            "Curve: KL old to new (kl_old)",
            "Setting: KL weight β (beta)",
        ):
            assert words in offered
        assert "Glossary: KL divergence" in offered
        await pilot.press("escape")
        assert [words for words in await found(pilot, "learning_rate") if words.startswith("Setting: Learning rate")]
        await pilot.press("escape")
        assert not isinstance(app.screen, CommandPalette)


async def best(pilot, typed: str) -> list[str]:
    offered = await found(pilot, typed)
    await pilot.press("escape")
    return offered[:6]


async def test_the_palette_finds_what_a_newcomer_calls_it():
    async with on_screen(1, size=WIDE) as (_, _, pilot):
        for typed in ("ask", "question", "prompt", "why"):
            assert "Probe" in await best(pilot, typed), typed
        for typed in ("picture", "screenshot"):
            assert (await best(pilot, typed))[0] == "Save the view", typed
        assert {"Probe", "Branch", "Compare"} <= set(await best(pilot, "what if"))
        for typed in ("diagnosis", "problem"):
            assert (await best(pilot, typed))[0] == "Health", typed
        assert (await best(pilot, "resume"))[0] == "Resume"


async def test_the_palette_finds_a_theme_by_its_name_or_as_light_or_dark():
    async with on_screen(size=WIDE) as (app, _, pilot):
        await settled(pilot)
        for typed in ("light", "dark", "paper"):
            assert (await best(pilot, typed))[0] == f"Theme: rlplay-{typed}"
        assert "Theme: rlplay-paper" in await best(pilot, "light theme"), "not by its name alone"
        await found(pilot, "paper")
        await pilot.press("enter")
        await until(pilot, lambda: app.theme == "rlplay-paper")
        await found(pilot, "rlplay-")
        shown = [str(option.prompt) for option in app.screen.query_one(OptionList).options]
        assert [each for each in shown if "present" in each] == ["Theme: rlplay-paper\nThe present one."]


async def test_the_palette_begins_with_what_the_focused_panel_and_the_moment_need():
    async with on_screen(2, size=WIDE) as (app, _, pilot):
        await settled(pilot)
        assert useful_now(app.panels.rollouts, app.play)[4] == "sort"
        assert useful_now(app.panels.curves.panels[0], app.play)[4] == "belief"


async def test_words_come_before_letters_in_the_palette():
    async with on_screen(1, size=WIDE) as (_, _, pilot):
        assert (await best(pilot, "diag"))[0] == "Health", "not Dynamic sampling"
        screens = [words for words in await best(pilot, "screen") if not words.startswith("Glossary")]
        assert "Save the view" in screens
        assert (await best(pilot, "screen"))[0] == screens[0], "what can be done, before what speaks of it"
        assert await best(pilot, "lrngrt"), "letters find too, where no word does"


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (("Ask the model", ""), ("Asking price", "")),
        (("Asking price", ""), ("Price", "what you ask for it")),
        (("Price", "what you ask for it"), ("Price", "for asking")),
        (("Price", "for asking"), ("Dark", "")),
    ],
)
def test_a_whole_word_of_a_name_fits_best(better, worse):
    assert closeness(["ask"], *better) > closeness(["ask"], *worse)


async def test_the_palette_lists_its_commands_as_it_opens() -> None:
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        await pressed(pilot, "ctrl+p")
        listed = app.screen.query_one(OptionList)
        assert listed.display
        assert listed.highlighted == 0
        names = [str(option.prompt).split("\n")[0] for option in listed.options]
        first = names.index("Help") + 1
        assert names[:6] == ["Run/pause", "Update", "Phase", "Undo", "Probe", "Colour"], "what helps most now"
        assert names[first:] == sorted(names[first:])
        assert "Before and after" in names
        assert not any(name.startswith("Glossary: ") for name in names), "these come after typing"
        workers = [worker for worker in app.workers if worker.node is app.screen]
        assert not workers, "no search is under way that would draw the screen again"
