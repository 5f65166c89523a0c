"""The keys of the focused panel and of the registered verbs: as many as fit, to press or to click."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual import events
from textual.app import RenderResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget

from rlplay.link.messages import Abilities
from rlplay.ui.format.shortcuts import Shortcut, written
from rlplay.ui.format.step_word import worded
from rlplay.ui.parts.panel import Panel
from rlplay.verbs import VERBS, Verb

MOST = 6
"""Keys in the line beside that of the help, which lists all."""
_EARLY, _LATE = "early keys of the panel", "late keys of the panel"
PRIORITY = ("run", "tour", "update", _EARLY, "panel", "undo", "lens", "knobs", _LATE)
"""The keys by importance: the first six that there are make the line, and a short line loses the last."""
ORDER = ("run", "tour", "update", "undo", "lens", "knobs", _EARLY, _LATE, "panel")
"""From left to right: the same key is at the same place as long as it can."""


@dataclass(frozen=True)
class FooterKey:
    """Keys with a title. `name` is a verb, or one of the names in `PRIORITY`."""

    keys: tuple[str, ...]
    title: str
    name: str
    help: str = ""

    @property
    def cells(self) -> int:
        """The width on the screen."""
        return cell_len(f"{self.caps} {self.title}")

    @property
    def caps(self) -> str:
        """The keys as written on a keyboard."""
        return " ".join(map(written, self.keys))

    def key_at(self, x: int) -> str:
        """The key at cell `x` of the entry; on the title, the first one."""
        begin = 0
        for key in self.keys:
            end = begin + cell_len(written(key))
            if begin <= x < end:
                return key
            begin = end + 1
        return self.keys[0]


def key_name(verb: Verb, own: Mapping[str, str]) -> str:
    """The verb's first key, or the user's `own` one, as written on a keyboard."""
    return written(own.get(verb.name, verb.keys[0])) if verb.keys else ""


class Footer(Widget):
    """A line with the six keys that matter most now, those of the focused panel among them, and the key of the help."""

    def __init__(self, *, without: tuple[str, ...] = (), id: str | None = None) -> None:
        """`without` are verbs to leave out; the trainer of another program may not know others."""
        super().__init__(id=id)
        self._cannot: Container[str] = ()
        self._panel: list[FooterKey] = []
        self._own: Mapping[str, str] = {}
        self._word = "token"
        self._runs = self._awaits = False
        self._shown = [VERBS[name] for name in (*ORDER, "help") if name in VERBS and name not in without]
        self._verbs: list[FooterKey] = []
        self.rename({})

    def rename(self, own: Mapping[str, str]) -> None:
        """Show the user's `own` keys."""
        self._own = own
        self._verbs = [
            FooterKey((own.get(verb.name, verb.keys[0]),), verb.title, verb.name, verb.help) for verb in self._shown
        ]

    def on_mount(self) -> None:
        """Follow the focus."""
        self.watch(self.screen, "focused", self.follow)

    def follow(self, focused: Widget | None) -> None:
        """Show the keys of the panel with the focus, as they are in its present view."""
        shortcuts: Sequence[Shortcut] = focused.shortcuts if isinstance(focused, Panel) else ()
        bindings: Iterable[BindingType] = () if focused is None else focused.BINDINGS
        bound = [each for each in bindings if isinstance(each, Binding) and each.id]
        names = {key: verb.name for verb in VERBS.values() for key in verb.keys} | {each.key: each.id for each in bound}
        before, self._panel = (
            self._panel,
            [
                FooterKey(
                    tuple(self._own.get(names.get(key) or "", key) for key in each.keys),
                    each.title,
                    _EARLY if each.early else _LATE,
                )
                for each in shortcuts
            ],
        )
        if self._panel != before:
            self.refresh()

    def render(self) -> RenderResult:
        entries = self.fitting(self.size.width)
        parts = [
            Content.assemble((entry.caps, self._ink(entry)), (f" {entry.title}", "$text-muted")) for entry in entries
        ]
        return Content.assemble(" ", Content(" " * _gap(entries, self.size.width)).join(parts))

    def allow(self, abilities: Abilities | None) -> None:
        """Dim the keys of the verbs that the trainer of another program does not know."""
        cannot: Container[str] = () if abilities is None else abilities.cannot
        if cannot != self._cannot:
            self._cannot = cannot
            self.refresh()

    def speak(self, step_word: str) -> None:
        """Name what the policy samples, in titles and tooltips."""
        if step_word != self._word:
            self._word = step_word
            self.refresh()

    def go(self, runs: bool) -> None:
        """Name what the key that runs and pauses would do."""
        if runs != self._runs:
            self._runs = runs
            self.refresh()

    def await_labels(self, awaits: bool) -> None:
        """Offer the key for labels instead of those that play on, as long as the run waits for the user's."""
        if awaits != self._awaits:
            self._awaits = awaits
            self.refresh()

    def _ink(self, entry: FooterKey) -> str:
        return "$text-muted" if entry.name in self._cannot else "bold $foreground"

    def on_click(self, event: events.Click) -> None:
        """Press the key under the mouse."""
        for begin, entry in self._places():
            if begin <= event.x < begin + entry.cells:
                self.app.simulate_key(entry.key_at(event.x - begin))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Explain the key under the mouse."""
        under = (entry for begin, entry in self._places() if begin <= event.x < begin + entry.cells)
        entry = next(under, None)
        tip = "" if entry is None else f"{entry.help or entry.title} Click to press the key."
        if tip != str(self.tooltip or ""):
            self.tooltip = Content(tip) if tip else None

    def _places(self) -> Iterator[tuple[int, FooterKey]]:
        """Each entry with the cell where it begins."""
        entries, x = self.fitting(self.size.width), 1
        for entry in entries:
            yield x, entry
            x += entry.cells + _gap(entries, self.size.width)

    def fitting(self, width: int) -> list[FooterKey]:
        """The entries: at most six that fit, and the help's; run and help always stay."""
        own = {key for entry in self._panel for key in entry.keys}
        verbs = [entry for entry in self._verbs if entry.keys[0] not in own]
        if self._awaits:
            verbs = [entry for entry in verbs if entry.name != "update"]
        entries = [self._entitled(entry) for entry in (*verbs, *self._panel)]
        chosen = sorted((each for each in entries if each.name != "help"), key=lambda each: PRIORITY.index(each.name))
        chosen, last = chosen[:MOST], [each for each in entries if each.name == "help"]
        while len(chosen) > 1 and _needed([*chosen, *last], 2) > width:
            chosen.pop()
        return [*sorted(chosen, key=lambda each: ORDER.index(each.name)), *last]

    def _entitled(self, entry: FooterKey) -> FooterKey:
        """The entry with its title for now, and in the words of this run."""
        if self._awaits and entry.name == "run":
            verb = VERBS["prefer"]
            return FooterKey((self._own.get(verb.name, verb.keys[0]),), "labels", "run", verb.help)
        title = {"run": "pause" if self._runs else "run", "help": "all keys"}.get(entry.name, entry.title)
        return replace(entry, title=worded(title, self._word), help=worded(entry.help, self._word))


def _gap(entries: list[FooterKey], width: int) -> int:
    return 3 if _needed(entries, 3) <= width else 2


def _needed(entries: list[FooterKey], gap: int) -> int:
    """The width of all entries with a `gap` between them, and a blank before them."""
    return 1 + sum(entry.cells for entry in entries) + gap * (len(entries) - 1)
