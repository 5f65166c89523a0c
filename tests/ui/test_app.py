"""The playground: keys become commands, events become panels, and nothing jumps that should stay."""

import re
import subprocess
import sys

import pytest

from rlplay.algorithms.catalogue import PRESETS
from rlplay.link.messages import Advance, Loading, Pause, Recorded, Set
from rlplay.trace.questions import WhatIf
from rlplay.trace.records import Changed, Finished, Rewound
from rlplay.ui.app import RlplayApp
from rlplay.ui.parts.panel_messages import Drafted
from rlplay.verbs import VERBS
from tests.recorded import synthetic_sampling, synthetic_started, synthetic_update
from tests.ui.stage import Fed, all_text, on_screen, playground, pressed, settled, shown

WIDE = (160, 45)


def test_every_verb_can_be_carried_out_or_belongs_to_scripts():
    app, _ = playground()
    performed = {name for name, verb in VERBS.items() if verb.where != "script" or verb.keys}
    assert performed == set(app.play.actions)


def test_no_key_means_two_things():
    keys = [key for verb in VERBS.values() for key in verb.keys]
    assert len(keys) == len(set(keys))


def test_the_screen_needs_no_torch():
    code = (
        "import sys, rlplay.ui.app; print(*(m for m in ('torch', 'transformers', 'rlplay.engine') if m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


@pytest.mark.parametrize(
    ("key", "command"),
    [
        ("space", Advance("forever")),
        ("full_stop", Advance("token")),
        ("n", Advance("phase")),
        ("s", Advance("step")),
        ("u", Advance("update")),
    ],
)
async def test_keys_of_the_engine(key, command):
    async with on_screen(size=WIDE) as (_, source, pilot):
        await settled(pilot)
        await pilot.press(key)
        assert source.commands == [command]


async def test_space_pauses_what_runs():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await settled(pilot)
        await pilot.press("space")
        assert "running" in shown(app.panels.header), "shown at once, before the engine answers"
        source.status(running=True)
        await settled(pilot)
        await pilot.press("space")
        assert source.commands[-1] == Pause()
        assert "pausing" in shown(app.panels.header)
        source.status()
        await settled(pilot)
        assert "paused" in shown(app.panels.header)


async def test_loading_is_shown_with_what_the_run_is_about():
    app, source = playground()
    source._queue = type(source._queue)()
    async with app.run_test(size=WIDE) as pilot:
        source.put(Loading("importing torch", 0.4))
        await settled(pilot)
        assert "importing torch" in shown(app.panels.starting)
        assert "starting" in shown(app.panels.header)
        assert "Word problems" in shown(app.panels.header), "known before the engine is there"
        assert "Does it learn?" in shown(app.panels.starting)
        assert "keys that you press are queued" in shown(app.panels.narrator)


async def test_a_panel_without_lines_is_painted_again_only_with_other_words(monkeypatch):
    app, source = playground()
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        await settled(pilot)  # the panels take the place of what the run is about
        painted = []
        monkeypatch.setattr(app.panels.tokens, "refresh", lambda *_, **__: painted.append(app.panels.tokens.words))
        app.refresher.everything()
        assert not painted, "while nothing is sampled, the app asks 15 times a second"
        source.status(running=True)
        await settled(pilot)
        assert painted == [app.panels.tokens.words]


async def test_the_header_names_the_run():
    async with on_screen(1, size=WIDE) as (app, _, _):
        header = shown(app.panels.header)
        for part in ("Word problems", "GRPO · ", "pocket 1.2M · cpu", "update 1", " tokens", "0.9 s", "paused"):
            assert part in header, header


async def test_the_header_says_how_many_processes_train():
    app, _ = playground(processes=3)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        assert "pocket 1.2M · cpu, 3 processes" in shown(app.panels.header)


async def test_the_phase_follows_the_records():
    async with on_screen(size=WIDE) as (app, source, pilot):
        seen = []
        for record in synthetic_update(1):
            source.records([record])
            await settled(pilot)
            seen.append((app.panels.phases.here, app.play.lens.name))
        assert seen == [
            ("sample", "probability"),
            ("score", "probability"),
            ("credit", "advantages"),
            ("update", "credit"),
            ("update", "credit"),
            ("after", "prob_delta"),
        ]


async def test_sampling_shows_tokens_as_they_come():
    async with on_screen(size=WIDE) as (app, source, pilot):
        lengths = []
        for record in synthetic_sampling(1):
            source.records([record])
            await settled(pilot)
            lengths.append(len(all_text(app.panels.tokens)))
        assert lengths == sorted(lengths)
        assert lengths[0] < lengths[-1]
        assert "token 11" in shown(app.panels.phases) or "SAMPLE" in shown(app.panels.phases)


async def test_looking_back_stays_while_the_engine_goes_on():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.update(1)
        source.update(2)
        await settled(pilot)
        await pilot.press("left_square_bracket")
        assert "looking at update 1  v back to live" in shown(app.panels.header)
        before = all_text(app.panels.tokens)
        app.play.point(5, 2)
        source.update(3)
        await settled(pilot)
        assert all_text(app.panels.tokens).replace("▸", "▎") == before.replace("▸", "▎")
        assert app.panels.tokens.cursor == (5, 2)
        await pilot.press("v")
        assert app.play.session.shown.number == 3
        assert "looking" not in shown(app.panels.header)


async def test_older_updates_come_from_the_run_file_when_memory_has_let_go():
    async with on_screen(size=WIDE) as (app, source, pilot):
        for number in range(1, 20):
            source.update(number)
        await settled(pilot)
        oldest = min(app.play.session.run.updates)
        assert oldest > 1
        source.kept[1] = app.play.session.run.updates[oldest]
        assert app.play.session.look_at(1)
        assert not app.play.session.look_at(2)


async def test_knobs_send_the_changed_settings():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await settled(pilot)
        await app.play.perform("set", {"beta": 0.1, "epsilon": 0.3})
        assert source.commands == [Set({"beta": 0.1, "epsilon": 0.3})]


async def test_settings_that_need_each_other_are_applied_by_one_press():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await settled(pilot)
        await pressed(pilot, "k")
        for name, value in {"returns": "gae", "baseline": "value"}.items():
            app.screen.draft.put(name, value)
        await pressed(pilot, "a")
        assert source.commands == [Set({"returns": "gae", "baseline": "value"})]


@pytest.mark.parametrize("key", ["k", "f12", "question_mark"])
async def test_panels_over_the_screen_open_and_close(key):
    async with on_screen(1, size=WIDE) as (app, source, pilot):
        await pilot.press(key)
        await pilot.pause()
        assert app.screen is not app.panels.main
        source.update(2)
        await settled(pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is app.panels.main
        assert app.play.session.shown.number == 2


async def test_a_lesson_speaks_asks_and_goes_on():
    script = [{"say": "First words."}, {"ask": {"question": "Up?", "choices": ["yes", "no"], "answer": "yes",
                                                "because": "So it is."}}, {"say": "Last words."}]  # fmt: skip
    app, _ = playground(script)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        assert "Does it learn?" in shown(app.panels.narrator)
        await pressed(pilot, "t")
        assert "First words." in shown(app.panels.narrator)
        await pressed(pilot, "t")
        assert "Up?" in shown(app.panels.narrator)
        await pressed(pilot, "1")
        assert "Right: yes. So it is." in shown(app.panels.narrator)


async def test_the_lesson_asked_for_while_the_engine_starts_is_played_once_it_is_ready():
    source = Fed([{"say": "First words."}, {"ask": {"question": "Up?", "choices": ["yes", "no"], "answer": "yes",
                                                    "because": "So it is."}}])  # fmt: skip
    app = RlplayApp(source)
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await settled(pilot)
        await pressed(pilot, "t")
        source.records([synthetic_started()])
        source.status()
        await settled(pilot)
        assert "First words." in shown(app.panels.narrator)
        await pressed(pilot, "t", "t")
        assert "▲ Press 1 or 2 first" in shown(app.panels.narrator)


async def test_the_palette_has_every_verb_and_statistic():
    app, _ = playground()
    async with app.run_test(size=WIDE):
        titles = {command.title for command in app.get_system_commands(app.screen)}
        verbs = {VERBS[name].title.lower() for name in app.play.actions}
        assert verbs <= {title.lower() for title in titles}
        assert {"Colour: Entropy (entropy)", "Colour: Advantage (advantages)", "Theme"} <= titles


async def test_leaving_closes_the_source():
    async with on_screen(size=WIDE) as (app, source, pilot):
        await settled(pilot)
        await pilot.press("q")
    assert source.closed == 1
    assert app.return_value == 0


async def test_a_changed_setting_is_marked():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.records([Changed(update=1, phase="sample", name="beta", value=0.1, previous=0.0)])
        await settled(pilot)
        assert app.play.session.run.history.marks


async def test_seconds_add_up_over_updates():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.update(1)
        source.update(2)
        await settled(pilot)
        finished = [r for n in (1, 2) for r in synthetic_update(n) if isinstance(r, Finished)]
        assert app.play.session.seconds == pytest.approx(sum(r.seconds for r in finished))
        assert re.search(r"1\.\d s", shown(app.panels.header))


async def test_a_change_that_waits_is_not_yet_in_the_formula():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.update(1)
        source.records([Changed(update=2, phase="sample", name="epsilon", value=0.5, previous=0.2)])
        source.status(1, epsilon=0.5)
        await app.play.perform("maths", True)
        await settled(pilot)
        assert "clip(w, 0.8, 1.2)" in all_text(app.panels.inspector), "update 1 had the old band"
        assert app.panels.curves.panels[2].source.settings.epsilon == 0.2
        source.update(2)
        await settled(pilot)
        assert "clip(w, 0.5, 1.5)" in all_text(app.panels.inspector)
        assert app.panels.curves.panels[2].source.settings.epsilon == 0.5
        source.records([Rewound(update=0, abandoned=2)])
        source.update(1)
        await settled(pilot)
        assert "clip(w, 0.8, 1.2)" in all_text(app.panels.inspector), "the change was given up with its update"


async def test_enter_on_the_curves_opens_the_update_under_the_cursor():
    async with on_screen(size=WIDE) as (app, source, pilot):
        for number in (1, 2, 3):
            source.update(number)
        await settled(pilot)
        app.panels.curves.panels[0].focus()
        await pilot.press("enter")
        assert app.play.session.looking is None, "no cursor, nothing picked"
        await pressed(pilot, "left", "left", "enter")
        assert app.play.session.looking == app.play.session.shown.number == 2
        await pressed(pilot, "right", "enter")
        assert app.play.session.looking is None, "the newest is the live one"
        assert app.play.session.shown.number == 3


async def test_the_algorithm_is_called_what_its_preset_calls_it():
    async with on_screen(size=WIDE) as (app, source, pilot):
        source.status(algorithm="ppo")
        await settled(pilot)
        assert PRESETS["ppo"].title in shown(app.panels.header)


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (160, 45)])
async def test_a_changed_setting_is_notified_long_enough_and_away_from_the_keys(size):
    async with on_screen(1, size=size, notifications=True) as (app, _, pilot):
        for changed in (
            Changed(update=2, phase="credit", name="beta", value=0.1, previous=0.0),
            Changed(update=2, phase="credit", name="algorithm", value="ppo", previous="grpo", also={"lam": 1.0}),
        ):
            app.play.session.apply(Recorded(changed))  # both between two frames
        await settled(pilot)
        (notification,) = app._notifications
        assert notification.message == (
            "KL weight β 0 → 0.1\nAlgorithm grpo → ppo, and 1 more with it\nfrom update 2 on"
        )
        assert notification.timeout >= 4
        (toast,) = app.screen.query("Toast")
        assert toast.region.y >= app.panels.phases.region.bottom
        assert toast.region.bottom <= app.panels.narrator.region.y
        await pressed(pilot, "k")
        (toast,) = app.screen.query("Toast")
        assert toast.region.bottom < app.screen.query_one("Vertical").region.bottom - 1, "the keys are in its last line"


async def test_what_a_branch_would_change_leaves_the_run_on_the_screen_alone():
    async with on_screen(1, size=WIDE) as (app, source, pilot):
        app.post_message(Drafted({"temperature": 1.2}))
        await settled(pilot)
        assert app.play.preview.shown is None
        assert not any(isinstance(command, WhatIf) for command in source.commands)
