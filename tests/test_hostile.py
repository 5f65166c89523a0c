"""The real program on hostile files, with the real engine and the bundled model: every byte that the terminal gets."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rlplay.trusted import agree, contents
from tests.hostile import SEQUENCES, letters, tame
from tests.poisoned import Poison
from tests.terminal import Terminal, rlplay

AROUND = re.compile(
    rf"{SEQUENCES.pattern}|\A\x1b\[\?1049h\x1b\[\?25l\x1b\[2J|\x1b\[\?(?:1000|1003|1004|1006|1015|1049|2004|25|7)[hl]"
    r"|\x1b\[(?:>\d+|<)u|\x1b\[\?(?:2026|2048)\$p"
)
"""Before the first screen and after the last one Textual sets modes of the terminal, too, and asks what it can do."""
STRINGS = "title", "clipboard", "colour, C1", "cursor", "alternate screen", "report", "turned", "application"
SIZE = (120, 35)
REWARD = "earned\u034f\u3164\ufe0f\U000e0101" + "\u0301\u0334" * 50
"""As odd as a name in Python can be."""
COPIED = re.compile(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")


class Tapped(Terminal):
    """A terminal that keeps what it is sent."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        super().__init__(argv, *SIZE, env)
        self._sent = b""

    def receive(self, patience: float) -> bytes:
        data = super().receive(patience)
        self._sent += data
        return data

    def written(self) -> tuple[str, str, str]:
        """All that the program has written: before its first screen, on its screens, and as it ended."""
        text = self._sent.decode().replace("\r\n", "\n")  # \n is what was written: the device adds the \r
        opening, begin, rest = text.partition("\x1b[1;1H")
        screens, end, closing = rest.rpartition("\x1b[?2004l")
        return opening, begin + screens, end + closing

    def opens(self, key: str, *shown: str) -> None:
        """Press a key, upon which these come, one after the other."""
        self.press(key)
        self.wait_for(".*".join(shown))

    def closes(self, key: str, gone: str) -> None:
        """Press a key, upon which this goes."""
        self.press(key)
        self.wait_for(rf"\A(?!.*{gone})")


class Files:
    """A scenario, a data set, a reward function and a home that are all hostile."""

    def __init__(self, folder: Path) -> None:
        self.poison = Poison(*STRINGS)
        word = self.poison.word
        prompts = [word("first prompt"), word("second prompt")]
        rows = [{"prompt": prompt, word("column"): word("value")} for prompt in prompts]
        self.scenario, dataset = (folder / f"{word('file')}.{kind}" for kind in ("yaml", "jsonl"))
        dataset.write_text("\n".join(map(json.dumps, rows)))
        self.rewards = folder / f"{word('module')}.py"
        self.reward(f"print({word('printed')!r}); return [len(text) for text in completions]")
        self.home = folder / word("home")
        self.home.mkdir()
        scenario = {
            "title": word("title"), "question": word("question"), "script": [{"say": word("say")}], "prompts": prompts,
            "dataset": dataset.name, "reward": [f"{self.rewards.name}:{REWARD}"], "eval_every": 0,
            "settings": {"num_prompts": 2, "num_generations": 2, "max_completion_length": 4,
                         "reward_weights": {REWARD: 1}},
        }  # fmt: skip
        self.scenario.write_text(yaml.safe_dump(scenario))

    def reward(self, body: str) -> None:
        """Let the reward function do this."""
        self.rewards.write_text(f"def score(completions, **columns):\n    {body}\n\nglobals()[{REWARD!r}] = score\n")

    def marker(self, field: str) -> str:
        """By what a field's word is known."""
        return self.poison.fields[field]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def terminal(files: Files) -> Iterator[Tapped]:
    program = Tapped(rlplay(str(files.scenario), "--trust"), {"RLPLAY_HOME": str(files.home)})
    yield program
    program.close()


def test_nothing_that_the_real_program_reads_is_obeyed_by_the_terminal(
    terminal: Tapped, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = files.marker
    terminal.wait_for(rf"{marker('title')}.*paused.*{marker('question')}", timeout=60)
    terminal.opens("t", marker("say"))
    terminal.opens("u", r"update 1 ·[^\n]*paused", marker("first prompt"), marker("second prompt"))
    terminal.opens("i", "answers earn", "policy now")
    terminal.opens("\t", r"answers earn[^\n]*\n[^\n]*" + marker("first prompt"), "typing a prompt")
    terminal.closes("escape", "typing a prompt")
    terminal.opens("=", marker("column"), marker("value"))
    terminal.closes("escape", marker("column"))
    terminal.closes("escape", "policy now")
    terminal.opens("f12", "─ Log ─", marker("printed"))
    terminal.opens("y", "messages copied")
    terminal.closes("f12", "─ Log ─")
    terminal.opens("?", "─ Help ─")
    terminal.closes("escape", "─ Help ─")
    terminal.opens("k", "─ Knobs ")
    for each in "weights":
        terminal.press(each)
    terminal.wait_for("Reward weights +{?earned")
    terminal.opens("escape", "─ Knobs · type to search")
    terminal.closes("escape", "─ Knobs ")
    terminal.opens("w", "Saved as")
    files.reward(f"raise ValueError({files.poison.word('error')!r})")
    terminal.opens("u", r"is[\s▌]+not[\s▌]+trusted[\s▌]+as[\s▌]+it[\s▌]+is")  # the path before it has any length
    monkeypatch.setenv("RLPLAY_HOME", str(files.home))
    agree(contents([str(files.rewards)]))
    terminal.opens("u", marker("error"))
    terminal.opens("q", "Leave[?]")
    terminal.press("q")
    assert terminal.wait_for_exit() == 0
    terminal.settle(0)

    opening, screens, closing = terminal.written()
    shown = letters(opening, SIZE, AROUND) + letters(screens, SIZE) + letters(closing, SIZE, AROUND)
    unseen = [field for field, marker in files.poison.fields.items() if marker not in shown]
    assert not unseen, "nothing is proved of words that were on no screen"
    assert any(marker("printed") in base64.b64decode(text).decode() for text in COPIED.findall(screens))
    for kind in ("txt", "svg"):
        (view,) = files.home.glob(f"runs/*.{kind}")
        saved = view.read_text(encoding="utf-8")
        assert marker("first prompt") in saved
        tame(saved)
