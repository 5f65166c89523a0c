"""All settings of the run: value, meaning and effect of a change. Changes are applied live and together."""

from __future__ import annotations

from collections.abc import Awaitable, Container
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from rlplay.algorithms.knobs import KNOBS, matching
from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.settings import Settings
from rlplay.link.messages import Abilities
from rlplay.scenario.reproduction import Reproduction
from rlplay.scenario.schema import Scenario
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.text import visible
from rlplay.ui.format.keyed import keyed
from rlplay.ui.formula.difference import differing
from rlplay.ui.formula.formula_lines import Kind
from rlplay.ui.knobs.algorithm_screen import AlgorithmScreen
from rlplay.ui.knobs.draft import Draft
from rlplay.ui.knobs.knob_list import KnobList, KnobSearch, ValueEntry, name_and_number
from rlplay.ui.knobs.setting_line import WIDEST, described, options, reproduced, row
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.parts.panel_messages import CursorStepped, Drafted, PreviewToggled

FINDING = "`↑ ↓` setting · `← →` change · `enter` type · `esc` all settings"
TYPING = "`enter` accept · `esc` cancel"
DIGITS = ".0123456789"
_INK: dict[Kind, str] = {"old": "$error", "new": "$success"}


class KnobsScreen(Dialogue[SomeSettings | None]):
    """Its result is the changes by setting, or None."""

    DEFAULT_CSS = """
    KnobsScreen { align: left top; background: transparent; }
    KnobsScreen > Vertical { width: 76; height: 1fr; margin: 2 0 0 0; }
    KnobsScreen.-huge > Vertical { width: 90; }
    KnobsScreen.-medium > Vertical { width: 62; }
    KnobsScreen.-narrow > Vertical { width: 1fr; dock: bottom; height: 17; margin: 0; }
    KnobsScreen KnobList {
        height: 1fr; background: $background; padding: 0; scrollbar-size-vertical: 1;
        text-wrap: nowrap; text-overflow: ellipsis;
        &, &:focus { border: none; background-tint: $foreground 0%; }
        & > .option-list--option-highlighted, &:focus > .option-list--option-highlighted {
            background: $accent 30%; color: $foreground; text-style: none;
        }
        &:ansi > .option-list--option-highlighted, &:ansi:focus > .option-list--option-highlighted {
            background: ansi_bright_black; color: ansi_white;
        }
        & > .option-list--option-hover { background: $foreground 8%; }
    }
    KnobsScreen VerticalScroll { height: auto; max-height: 60%; border-top: solid $border; scrollbar-size-vertical: 1; }
    KnobsScreen.-narrow VerticalScroll { max-height: 9; }
    KnobsScreen Static { height: auto; min-height: 4; padding: 0 1; }
    KnobsScreen Input {
        display: none;
        &, &:focus { height: 1; border: none; padding: 0 1; background: $surface; }
        &.-typing { display: block; }
    }
    """
    AUTO_FOCUS = "KnobList"
    VERBS_ON_CHANGES: ClassVar[set[str]] = {"apply", "reset", "compare"}
    """Actions that need a change. Until there is one, their letters search like all others."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "apply", "apply"),
        Binding("z", "reset", "undo", id="undo"),
        Binding("y", "copy", "copy", id="copy"),
        Binding("ctrl+y", "copy_code", "copy the share code"),
        Binding("b", "compare", "compare", id="compare"),
        Binding("shift+left", "wander(-1, 0)", "token left", show=False),
        Binding("shift+right", "wander(1, 0)", "token right", show=False),
        Binding("shift+up", "wander(0, -1)", "line up", show=False),
        Binding("shift+down", "wander(0, 1)", "line down", show=False),
        Binding("slash", "find", "find", id="find"),
        Binding("asterisk", "show_all", "all settings, or those of the lesson"),
        Binding("escape", "cancel", "cancel"),
        Binding("q", "dismiss(None)", "close"),
    ]

    def __init__(
        self, settings: Settings, scenario: Scenario, live: bool = True, at: str | None = None,
        abilities: Abilities | None = None, on_record: Container[str] | None = None, step_word: str = "token",
    ) -> None:  # fmt: skip
        """`settings` are the current ones in a run of `scenario`; without `live` they can only be viewed and copied.

        The cursor starts on the setting named `at`, else on the first. `step_word` names what the policy samples.
        """
        super().__init__()
        self.draft = Draft(settings, live, abilities, on_record)
        self.reproduction = Reproduction(scenario)
        self.live, self.at = live, at
        self._foreign, self._step_word = on_record is not None, step_word
        self._named = scenario.knobs
        self._only = self._named or list(KNOBS)
        self.sought = ""
        self.refused = self.done = ""
        self.foreseen: list[str] = []
        self.comparable = False  # whether there is a preview
        self._announced: SomeSettings = {}

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title, panel.border_subtitle = keyed(self.title_line), keyed(self.key_line)
            yield KnobSearch(id="search", placeholder="find: beta, clip, length …", select_on_focus=False)
            yield KnobList(*self._options(self.at))
            yield ValueEntry(id="value")
            with VerticalScroll(can_focus=False):
                yield Static()

    def on_mount(self) -> None:
        knobs = self.query_one(KnobList)
        knobs.focus()
        knobs.highlighted = knobs.get_option_index(self.at) if self.at in KNOBS else 1
        self._describe()

    @on(KnobList.Resized)
    def _fit(self) -> None:
        """Show as many choices as fit."""
        self._refresh()

    @property
    def name_under_cursor(self) -> str:
        """The name of the setting under the cursor."""
        option = self.query_one(KnobList).highlighted_option
        return option.id if option is not None and option.id is not None else "algorithm"

    @property
    def title_line(self) -> str:
        """The upper line of the frame."""
        if self.live and isinstance(self.focused, KnobSearch):
            return "Knobs · `← →` or `enter` change · then `a` apply"
        if isinstance(self.focused, Input):
            return "Knobs"  # the input takes letters and `esc`
        if not self.live:
            return "Knobs of a recorded run · `esc` close"
        differs = bool(self.draft.differing())
        leave = "all settings" if self.sought else "cancel" if differs else "close"
        return f"Knobs · {'`a` apply' if differs else 'type to search'} · `esc` {leave}"

    @property
    def key_line(self) -> str:
        """The lower line of the frame: the keys that work now."""
        changed = f"`z` undo{' · `b` compare' * self.comparable}" if self.draft.differing() else "`/` find"
        return f"`← →` `0-9` change · `enter` type · {changed}{'' if self._foreign else ' · `y` `ctrl+y` copy'}"

    def check_action(
        self,
        action: str,
        parameters: tuple[object, ...],  # noqa: ARG002 - Textual's signature
    ) -> bool | None:
        """Disable apply, reset and compare until something has changed; without rlplay's data there is no command."""
        if action in ("copy", "copy_code"):
            return not self._foreign
        return action not in self.VERBS_ON_CHANGES or bool(self.draft.differing())

    def on_key(self, event: events.Key) -> None:
        """A letter without an action starts a search, a digit or a point the value of a number."""
        letter = event.character or ""
        if not self.query_one(KnobList).has_focus or event.key in self.active_bindings:
            return
        if letter.isalpha():
            event.stop()
            self.action_find(letter)
        elif letter and letter in DIGITS:
            event.stop()
            self._entry.begin(self.draft, self.name_under_cursor, letter)

    def action_find(self, begun: str = "") -> None:
        """Search for a part of a setting's name or meaning."""
        search = self._search
        search.value, search.cursor_position = begun, len(begun)
        search.add_class("-typing")
        search.focus()

    def action_go_on(self, action: str) -> Awaitable[bool]:
        """Stop typing: the list keeps the matches and handles the key."""
        listed = self.query_one(KnobList)
        self.set_focus(listed)
        return self.app.run_action(action, listed)

    @on(Input.Changed, "#search")
    def _narrow(self, event: Input.Changed) -> None:
        found = not event.value or self._found(event.value)
        name, number = name_and_number(event.value)
        if number and name == self.sought.strip() and not (found and number[0] != "."):
            self._search.value = name
            self._entry.begin(self.draft, self.name_under_cursor, number)
            return
        if not found:
            hidden = "it is hidden: esc, then * shows all" if matching(event.value) else "try fewer letters"
            self.refused = f"no setting matches “{visible(event.value)}”; {hidden}"
            self._describe()
            return
        self.refused, self.sought = "", event.value
        self.set_class(bool(self.sought), "-sought")
        listed, here = self.query_one(KnobList), self.name_under_cursor
        with self.app.batch_update():
            listed.set_options(self._options(here))
            listed.highlighted = 0 if self.sought else listed.get_option_index(here)
        self._label()

    @property
    def _search(self) -> KnobSearch:
        return self.query_one(KnobSearch)

    @property
    def _entry(self) -> ValueEntry:
        return self.query_one(ValueEntry)

    def action_show_all(self) -> None:
        """Show all settings, or again only those that the scenario names."""
        if self._named:
            self._only = list(KNOBS) if self._only is self._named else self._named
            self._refresh()

    def action_nudge(self, direction: int) -> None:
        """One step up or down."""
        self._attempt(lambda: self.draft.nudge(self.name_under_cursor, direction))

    def action_reset(self) -> None:
        """Reset the setting to its current value."""
        self.draft.reset(self.name_under_cursor)
        self._refresh()

    def action_apply(self) -> None:
        """Apply the changes, if they fit together."""
        if not self.live:
            self.refused = "a recorded run cannot be changed; y copies the command to run it with these settings"
            self._refresh()
        elif not self.draft.problem and self._attempt(self.draft.changes):
            self.dismiss(self.draft.changes())

    def action_cancel(self) -> None:
        """Stop typing, show all settings, or close without changes."""
        if self._entry.has_class("-typing"):
            self._entry.give_up()
            self._stop_typing()
            self._refresh()
        elif self._search.has_class("-typing"):
            self._search.value = ""
            self._search.remove_class("-typing")
            self.query_one(KnobList).focus()
        else:
            self.dismiss(None)

    def action_copy(self) -> None:
        """Copy the command line."""
        self._copy(self.reproduction.command(self.draft.settings), "Copied: paste it into a shell.")

    def action_copy_code(self) -> None:
        """Copy the share code."""
        code, _ = self.reproduction.code(self.draft.settings)
        if code:
            self._copy(code, f"Copied. To run it: rlplay {code[:12]}…")

    def _copy(self, text: str, done: str) -> None:
        self.app.copy_to_clipboard(text)
        self.refused, self.done = "", done
        self._refresh()

    def action_compare(self) -> None:
        """Switch between the update as trained and the update as it would be."""
        if self.comparable:
            self.post_message(PreviewToggled())

    def action_wander(self, along: int, across: int) -> None:
        """Move the cursor among the tokens."""
        self.post_message(CursorStepped(along, across))

    def tell(self, foreseen: list[str], comparable: bool = False) -> None:
        """Show in a few lines what the changes would do to the update on the screen; `comparable`: it is shown, too."""
        self.foreseen, self.comparable = foreseen, comparable
        if self.is_mounted:  # a preview may come before the screen is there
            self._describe()
            self._label()

    @on(OptionList.OptionSelected)
    def _type(self) -> None:
        if self.name_under_cursor == "algorithm" and not self._foreign:
            self.app.push_screen(AlgorithmScreen(str(self.draft.value("algorithm"))), self._choose)
        else:
            self._entry.begin(self.draft, self.name_under_cursor)

    def _choose(self, name: str | None) -> None:
        if name is not None:
            self._attempt(lambda: self.draft.put("algorithm", name))

    @on(ValueEntry.Tried)
    def _tried(self) -> None:
        self.refused = self.done = ""
        self._refresh()

    @on(Input.Submitted, "#value")
    def _typed(self, event: Input.Submitted) -> None:
        if self._attempt(lambda: self.draft.put(self.name_under_cursor, event.value.strip())):
            self._stop_typing()

    @on(OptionList.OptionHighlighted)
    def _moved(self) -> None:
        self.refused = self.done = ""
        self._describe()

    def _attempt(self, change: Any) -> bool:
        self.refused = self.done = ""
        try:
            change()
        except ValueError as error:
            self.refused = str(error)
        self._refresh()
        return not self.refused

    def _stop_typing(self) -> None:
        self._entry.remove_class("-typing")
        self.query_one(KnobList).focus()

    def _refresh(self) -> None:
        listed, here = self.query_one(KnobList), self.name_under_cursor
        wanted = self._options(here)
        if [option.id for option in wanted] != [option.id for option in listed.options]:
            with self.app.batch_update():
                listed.set_options(wanted)
                listed.highlighted = listed.get_option_index(here)
        else:
            for index, (option, shown) in enumerate(zip(wanted, listed.options, strict=True)):
                row, before = option.prompt, shown.prompt
                if not (isinstance(row, Content) and isinstance(before, Content) and row.is_same(before)):
                    listed.replace_option_prompt_at_index(index, row)
        self._describe()
        self._label()
        differing = {} if self.draft.problem else self.draft.differing()
        if differing != self._announced:
            self._announced = differing
            self.post_message(Drafted(differing))

    @on(events.DescendantFocus)
    def _label(self) -> None:
        panel = self.query_one(Vertical)
        panel.border_title = keyed(self.title_line)
        typing = FINDING if self.focused is self._search else TYPING
        panel.border_subtitle = keyed(typing if isinstance(self.focused, Input) else self.key_line)

    def _describe(self) -> None:
        self.query_one(Static).update(self._detail(self.name_under_cursor))

    def _options(self, at: str | None) -> list[Option]:
        """A line for each setting; during a search, for each match, of any algorithm."""
        if self.sought:
            return [Option(self._row(knob), id=knob.name) for knob in self._found(self.sought)]
        return options(self.draft, at, self._only, self._width)

    def _found(self, typed: str) -> list[Knob]:
        return [knob for knob in matching(typed) if knob.name in self._only]

    def _row(self, knob: Knob) -> Content:
        return row(self.draft, knob, self._width)

    @property
    def _width(self) -> int:
        """Cells in a line of the list; before it exists, enough for anything."""
        listed = self.query(KnobList)
        return listed.first().scrollable_content_region.width or WIDEST if listed else WIDEST

    def _detail(self, name: str) -> Content:
        knob = KNOBS[name]
        lines = described(self.draft, knob, self._row(knob), self._step_word)
        if trouble := self.refused or self.draft.problem:
            outcome = [Content.styled(f"▲ {visible(trouble)}", "$error")]
        else:
            outcome = [Content.styled(visible(line), "$warning") for line in self.foreseen]
        terms = differing(self.draft.now, self.draft.settings)
        outcome += [Content.styled(text, _INK[kind]) for line in terms for text, kind in line]
        # In little room, the effect of the change comes before the description of the setting.
        lines = [*outcome, *lines] if self.has_class("-narrow") else [*lines, *outcome]
        return Content("\n").join([*lines, *self._again()])

    def _again(self) -> list[Content]:
        """What was done, else how to repeat these settings; none of another program's run."""
        if self.done or self._foreign:
            return [Content.styled(self.done, "$success")] if self.done else []
        return reproduced(self.reproduction, self.draft.settings)
