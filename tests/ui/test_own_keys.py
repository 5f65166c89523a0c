"""The user's own keys: what the file may hold, and that keys, footer, help and palette then agree."""

import re
from pathlib import Path

import pytest
from textual.widgets import Static

from rlplay import paths
from rlplay.cli.play import _open
from rlplay.plain_yaml import plain_yaml
from rlplay.ui import start
from rlplay.ui.app import RlplayApp
from rlplay.ui.command_palette import commands
from rlplay.ui.compare.compare_screen import CompareScreen
from rlplay.ui.own_keys import actions, keymap, read
from rlplay.verbs import VERBS
from tests.ui.stage import playground, pressed, settled


@pytest.fixture
def keys(tmp_path, monkeypatch):
    """Writes the file."""
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))

    def write(text: str) -> None:
        paths.own_keys().write_text(text, encoding="utf-8")

    return write


def test_without_a_file_every_key_is_what_it_was(keys):
    assert read(RlplayApp) == {}
    keys("# nothing yet\n")
    assert read(RlplayApp) == {}


def test_every_verb_with_a_key_can_have_another():
    assert {verb.name for verb in VERBS.values() if verb.keys} <= set(actions(RlplayApp))
    assert keymap({"update": "U", "run": "f6", "find": "ctrl+f", "help": "%"}, RlplayApp) == {
        "update": "U", "run": "f6", "find": "ctrl+f", "help": "percent_sign",
    }  # fmt: skip


def test_two_actions_can_change_places():
    assert keymap({"lens": "x", "largest": "c"}, RlplayApp) == {"lens": "x", "largest": "c"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("updat: U", "there is no action 'updat'; did you mean 'update'?"),
        ("3: U", "there is no action 3; docs/keys.md lists the actions"),
        ("lens: x", "x is the key of both lens and largest; give one another key"),
        ("lens: U\nupdate: U", "U is the key of both update and lens; give one another key"),
        ("lens: left", "left is the key of both"),
        ("lens: L", "L is the key of both curve.log and lens in CurvePanel; give one another key"),
        ("lens: ','", ", is the key of both curve.previous and lens in CurvePanel; give one another key"),
        ("lens: D", None),
        ("undo: a", "a is the key of both “apply” and undo in "),
        ("lens: ctrl+q", "lens: ctrl+q cannot be given away; choose another key"),
        ("lens: nosuch", "lens: there is no key 'nosuch'; write it as x, X, f5, ctrl+x or ?"),
        ("lens: true", "lens needs a key in quotes, for example lens: 'x'"),
        ("lens:", "lens needs a key in quotes"),
        ("[lens, x]", "write one action and its key a line, for example lens: x"),
        ("lens: 'x", "not YAML"),
        ("lens: x\nlens: U", "line 2: 'lens' appears twice"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_the_file(keys, text, problem):
    keys(text)
    if problem is None:
        assert read(RlplayApp)
        return
    with pytest.raises(ValueError, match=re.escape(problem.replace("left", "←"))) as found:
        read(RlplayApp)
    assert str(found.value).startswith(str(paths.own_keys()))
    assert "\n" not in str(found.value)


async def test_the_key_the_footer_the_help_and_the_palette_agree(keys):
    keys("update: U\ncurve.back: R\nhelp: f2\n")
    app, source = playground()
    app.take_keys(read(RlplayApp))
    async with app.run_test(size=(160, 45)) as pilot:
        await settled(pilot)
        assert "U update" in app.panels.keys.render().plain
        await pressed(pilot, "u")
        assert source.commands == [], "the old key is free"
        await pressed(pilot, "U")
        assert [command.until for command in source.commands] == ["update"]
        at = app.panels.keys.render().plain.index("U update")
        await pilot.click(app.panels.keys, offset=(at, 0))
        await settled(pilot)
        assert len(source.commands) == 2
        app.panels.curves.panels[0].focus()
        await settled(pilot)
        assert "R → cursor" in app.panels.keys.render().plain
        await pilot.press("R")
        await pressed(pilot, "f2")
        shown = "\n".join(str(part.render()) for part in app.screen.query(Static) if type(part) is Static)
        assert re.search(rf"U +{re.escape(VERBS['update'].help)}", shown)
        assert re.search(r"R +cursor back", shown)
        (command,) = [each for each in commands(app.play) if each.title == "Update"]
        assert command.help.startswith("U · ")


async def test_a_dialogue_that_repeats_a_verb_follows_it(keys):
    keys("lens: N\n")
    own = read(RlplayApp)
    ids = {binding.id for binding in CompareScreen.BINDINGS}
    assert {"lens", "colours", "copy", "shot", "update", "run", "older", "newer"} <= ids
    assert own == {"lens": "N"}


def test_a_wrong_file_ends_the_program_before_its_screen(keys, monkeypatch):
    keys("nothing: x\n")
    app, _ = playground()
    monkeypatch.setattr(app, "run", lambda: pytest.fail("the screen was opened"))
    with pytest.raises(ValueError, match="there is no action 'nothing'"):
        start.run(app)


def test_the_page_about_keys_lists_every_action():
    page = (Path(__file__).parents[2] / "docs" / "keys.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`([\w.]+)`", page.split("The actions:")[1]))
    assert listed == {name for name in actions(RlplayApp) if not name.startswith("narrator.")}
    example = page.split("```yaml")[1].split("```")[0]
    assert keymap(plain_yaml(example), RlplayApp)["largest"] == "c"


def test_the_line_about_a_wrong_file_is_on_the_normal_screen(keys, monkeypatch, capsys):
    keys("lens: x\n")
    monkeypatch.setattr("rlplay.cli.splash.on_a_terminal", lambda: True)
    monkeypatch.setattr("rlplay.cli.play.needs_a_terminal", lambda _instead: None)
    monkeypatch.setattr(start, "play", lambda *_, **__: pytest.fail("the screen was opened"))
    with pytest.raises(ValueError, match="x is the key of both lens and largest"):
        _open("two-plus-two", "cpu", {})
    assert capsys.readouterr().out.endswith("\x1b[?1049l")
