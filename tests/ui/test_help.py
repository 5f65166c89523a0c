"""Help: about the panel that has the focus, from the registries."""

from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from rlplay.algorithms.setting_values import decoded
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import METRICS
from rlplay.trace.update import Update
from rlplay.ui.answers.answer_list import AnswerList
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.format.markdown import markdown
from rlplay.ui.glossary.glossary_screen import GlossaryScreen
from rlplay.ui.help.help_screen import GENERAL, HelpScreen
from rlplay.ui.labels.label_screen import LabelScreen
from rlplay.ui.narrator.narrator import Narrator
from rlplay.ui.plot.catalogue import KL
from rlplay.ui.tokens.token_map import TokenMap
from rlplay.ui.tokens.token_panel import Inspector
from rlplay.verbs import VERBS
from tests.apart import update_apart
from tests.ui.stage import on_screen, pressed, settled


class Host(App):
    def __init__(self, widget: Widget | None, update: Update | None = None) -> None:
        super().__init__()
        self.widget, self.shown_update = widget, update

    def compose(self) -> ComposeResult:
        if self.widget is not None:
            yield self.widget

    def on_mount(self) -> None:
        self.push_screen(HelpScreen(self.widget, shown=self.shown_update))


def words(screen: Screen) -> str:
    """What the help on the screen says."""
    return str(next(text for text in screen.query(Static) if type(text) is Static).render())


async def shown(widget: Widget | None, update: Update | None = None) -> str:
    """What the help about a panel says, with an update on the screen."""
    app = Host(widget, update)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        return words(app.screen)


async def test_every_panel_explains_itself():
    for widget in (CurvePanel(KL), Narrator(), TokenMap(), AnswerList()):
        text = await shown(widget)
        assert markdown(widget.HELP).plain in text
        first = text.split(markdown(widget.HELP).plain)[0].split("\n")
        assert len(first) <= 8, "the text is in sight"


async def test_the_help_of_a_panel_begins_with_its_keys_and_its_parts():
    keys, gap, *parts = (await shown(AnswerList())).split("\n")[:5]
    assert keys == "↑ ↓ answer   o sort   enter unfold"
    assert not gap
    for line, (picture, words) in zip(parts, AnswerList.MINIATURE, strict=True):
        assert line.strip().startswith(picture.strip())
        assert line.endswith(words)


async def test_without_a_panel_it_says_what_this_is():
    assert (await shown(None)).startswith(markdown(GENERAL).plain)


def test_help_texts_become_styled_lines():
    """One line for each paragraph and each item, with nothing left of the marks."""
    text = markdown("# Title\n\nThe `c` key, and\nthe **panel**.\nOne of:\n* first,\n  goes on\n* second\n")
    assert text.plain == "Title\n\nThe c key, and the panel. One of:\n• first, goes on\n• second"
    styles = {text.plain[span.start : span.end]: span.style for span in text.spans}
    assert styles == {"Title": "bold $foreground", "c": "bold $foreground", "panel": "bold"}


async def test_a_part_without_help_is_explained_by_what_is_around_it():
    class Part(Widget):
        pass

    class Whole(Narrator):
        def compose(self) -> ComposeResult:
            yield Part()

    app = Host(Whole())
    async with app.run_test() as pilot:
        app.pop_screen()
        await pilot.pause()
        app.push_screen(HelpScreen(app.query_one(Part)))
        await pilot.pause()
        assert words(app.screen).startswith(markdown(Narrator.HELP).plain)


async def test_a_curve_is_explained_by_its_metrics():
    below = await shown(CurvePanel(KL))
    for name in ("kl", "kl_old"):
        assert METRICS[name].formula in below
        assert METRICS[name].reading in below
    assert METRICS["reward"].formula not in below


async def test_a_clipped_token_with_an_entropy_bonus_still_has_a_gradient():
    for panel in (CurvePanel(KL), TokenMap(), Inspector()):
        assert "a KL term or an entropy bonus in the loss" in " ".join(panel.HELP.split()).replace("A KL", "a KL")


async def test_answers_from_a_file_are_not_called_sampled():
    for panel in (TokenMap(), Inspector(), AnswerList()):
        assert "sampled" not in panel.HELP


async def test_advantages_and_the_pull_of_pairs_are_explained_apart():
    advantage, pull = LENSES["advantages"], LENSES["advantages"].of(decoded({"loss_type": "sigmoid"}))
    assert (advantage.title, pull.title) == ("Advantage", "Pull")
    assert "pairs" not in f"{advantage.formula} {advantage.reading}"
    assert "∂loss/∂logp" in pull.formula


async def test_the_labels_panel_defines_the_implicit_reward_with_its_logarithm():
    assert "β·log(π/πʳ)" in LabelScreen.HELP


async def test_the_tokens_are_explained_by_every_lens_with_its_scale():
    below = await shown(TokenMap())
    for lens in LENSES.values():
        assert (lens.formula in below) != lens.special, "a sampler of its own has this update, or none"
        assert (lens.reading in below) != lens.special
    assert "Scale: −2 … 2 advantage units." in below
    below = await shown(TokenMap(), update_apart())
    assert all(lens.reading in below for lens in LENSES.values() if lens.special)


async def test_every_key_is_listed():
    below = await shown(Narrator())
    for verb in VERBS.values():
        assert not verb.keys or verb.help in below
    for key in (" . ", " ? ", " [ ", " F12 ", "ctrl+p"):
        assert key in f"{below} "


async def test_kl_is_explained_in_words_where_it_is_drawn():
    text = await shown(CurvePanel(KL))
    for message in ("How far one policy is from another", "from its frozen copy", "How far one update"):
        assert message in text
    for estimator in ("• k1 = −log r", "• k2 = ½·(log r)²", "• k3 = r − 1 − log r"):
        assert estimator in text


async def test_a_second_question_mark_leads_to_the_glossary():
    async with on_screen(size=(100, 30)) as (app, _, pilot):
        await settled(pilot)
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        await pressed(pilot, "question_mark")
        assert isinstance(app.screen, GlossaryScreen)
        await pilot.press("escape")
        assert app.screen is app.panels.main


async def test_escape_closes_it():
    app = Host(None)
    async with app.run_test() as pilot:
        await pilot.press("escape")
        assert not isinstance(app.screen, HelpScreen)
