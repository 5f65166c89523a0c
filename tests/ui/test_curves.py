"""A curve panel: the values and names in its border, what it draws, and what it leaves out."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from textual.app import ComposeResult

from rlplay.algorithms.setting_values import decoded
from rlplay.algorithms.settings import UNKNOWN
from rlplay.foreign.foreign_run import known_settings
from rlplay.trace.history import History
from rlplay.trace.numbers import number as number_text
from rlplay.trace.records import Finished, Rewound, Stepped
from rlplay.trace.update import Update
from rlplay.ui.curves.curve_panels import CurvePanels
from rlplay.ui.plot.catalogue import KL, REWARD
from rlplay.ui.plot.curve import FIRST, GHOST
from rlplay.ui.plot.curve_view import BEFORE, SHADE, SHARE, CurveView, single
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import LIGHT, NO_UPDATE, NOT_RECORDED, PlotData, first_update
from rlplay.ui.pull.ratio_histogram import NO_STEP, ONE_STEP, ONE_STEP_HERE, ONE_STEP_THEN, Ratios
from tests.recorded import synthetic_sampling, synthetic_started, synthetic_update
from tests.ui.curve_panels import CHOSEN, Host, recorded, subtitle, title
from tests.ui.stage import on_screen, settled


async def test_before_the_first_update_every_panel_says_what_will_be_there():
    app = Host()
    async with app.run_test(size=(160, 12)):
        titles = [title(panel) for panel in app.panels]
        assert titles == ["Reward", "KL", "Ratio · clip", "Length"]
        assert [panel.render().plain for panel in app.panels] == [
            first_update(title).replace("`", "") for title in titles
        ]


async def test_an_empty_recording_promises_no_update():
    class Replayed(Host):
        def compose(self) -> ComposeResult:
            yield CurvePanels(replayed=True)

    app = Replayed()
    async with app.run_test(size=(160, 12)):
        assert [panel.render().plain for panel in app.panels] == [""] * 4, "it has not been read yet"
        app.query_one(CurvePanels).show(History(), None, CHOSEN)
        assert [panel.render().plain for panel in app.panels] == [NO_UPDATE] * 4
        app.query_one(CurvePanels).show(History(), None, msgspec.structs.replace(CHOSEN, surrogate="trpo"))
        assert app.panels[2].render().plain == NO_UPDATE
        history, _ = recorded(2)
        app.query_one(CurvePanels).show(history, None, CHOSEN)
        assert app.panels[2].render().plain == NO_STEP.replace("`", ""), "at its beginning, before update 1"


async def test_no_estimator_is_named_before_the_settings_are_known():
    app = Host()
    async with app.run_test(size=(160, 12)):
        app.query_one(CurvePanels).show(History(), None, UNKNOWN)
        assert title(app.panels[1]) == "KL"
        assert "first step" in app.panels[2].render().plain, "nor is it known how many steps there are"


async def test_borders_name_the_latest_values():
    history, live = recorded()
    app = Host(history, live)
    async with app.run_test(size=(160, 12)):
        reward, kl, ratio, length = app.panels
        assert title(reward) == f"Reward ━ {history.latest('reward'):.3g} · shade 10–90 %", "the band has a name"
        assert subtitle(reward) == "○ held out 0.432 (update 5)", "it is not the newest update's"
        assert title(kl) == f"KL to reference {history.latest('kl'):.3g} · k3"
        sparks = subtitle(kl).split()[2]
        assert len(sparks) == 8
        assert set(sparks) <= set("▁▂▃▄▅▆▇█")
        assert subtitle(kl) == f"to old {sparks} {history.latest('kl_old'):.3g} nats · k3"
        clipped = live.steps[-1].metrics["clip_ratio/region_mean"]
        assert title(ratio) == f"Ratio, step 4/4 · clipped {100 * clipped:.1f} %"
        assert title(length).split(" · ")[0].endswith("tokens")
        assert subtitle(length).startswith("entropy ")


async def test_what_is_not_measured_is_not_named():
    history, live = recorded(3)
    app = Host(history, live)
    async with app.run_test(size=(160, 12)):
        assert subtitle(app.panels[0]) == "", "nothing was held out so far"
        assert subtitle(app.panels[1]).startswith("to old ")


async def test_the_estimator_of_the_settings_is_named():
    history, live = recorded()
    app = Host(history, live, kl_estimator="k1")
    async with app.run_test(size=(160, 12)):
        assert title(app.panels[1]).endswith("· k1")
        assert subtitle(app.panels[1]).endswith("· k3"), "KL old to new is always k3"


async def test_the_screen_says_what_the_run_states():
    async with on_screen(1, size=(160, 45)) as (app, _, _):
        assert title(app.panels.curves.panels[1]).endswith(f"· {CHOSEN.kl_estimator}")


@pytest.mark.parametrize(("stated", "named"), [({"kl_estimator": "k1", "beta": 0.1}, "k1"), ({"beta": 0.1}, "")])
def test_the_estimator_is_named_if_it_is_on_record_whatever_else_is(stated, named):
    known = known_settings(stated)
    view = CurveView("KL", KL.traces[:1])
    finished = synthetic_update(1)[-1]
    source = PlotData(history := History(), None, decoded(known), on_record=known)
    history.add(msgspec.structs.replace(finished, metrics={"kl": 2e-7}))
    said = view.titles(source, None, False)[0].plain
    assert said.endswith(f" · {named}") == bool(named)
    assert ("≈0" in said) == bool(named), "a mean of differences has rounding noise"


def not_ended(number: int) -> Update:
    """An update of one optimizer step, before its new probabilities are known."""
    update = Update(number)
    for record in synthetic_update(number, steps=1)[:-1]:
        update.add(record)
    return update


async def test_one_step_per_batch_is_explained_until_the_update_ends():
    history, live = recorded(steps=1)
    app = Host(history, not_ended(live.number))
    async with app.run_test(size=(160, 12)):
        assert app.panels[2].render().plain == ONE_STEP.replace("`", "")


async def test_of_an_update_that_is_past_no_advice_is_given():
    history, _ = recorded(steps=1)
    app = Host(history, not_ended(4))
    async with app.run_test(size=(160, 12)):
        assert app.panels[2].render().plain == ONE_STEP_THEN


async def test_the_ratios_stay_until_the_next_update_has_some_and_go_with_a_rewind():
    history, live = recorded()
    app = Host(history, live)
    async with app.run_test(size=(160, 12)):
        panels = app.query_one(CurvePanels)
        shown = title(app.panels[2])
        assert shown.startswith("Ratio, step 4/4")
        panels.show(history, Update(live.number + 1), CHOSEN)
        assert title(app.panels[2]) == shown
        panels.show(history, Update(2), CHOSEN)
        assert title(app.panels[2]) == "Ratio · clip"


async def test_the_bounds_are_those_of_the_settings_and_absent_without_clipping():
    history, live = recorded()
    for settings, shown in (({"epsilon": 0.1, "epsilon_high": 0.3}, True), ({"surrogate": "logp"}, False)):
        app = Host(history, live, **settings)
        async with app.run_test(size=(160, 12)) as pilot:
            await pilot.pause()
            axis = app.panels[2].render().plain.split("\n")[-1]
            assert ("0.9" in axis and "1.3" in axis) == shown


async def test_an_upper_bound_of_its_own_may_be_one():
    history, live = recorded()
    app = Host(history, live, epsilon=0.2, epsilon_high=0.0)
    async with app.run_test(size=(160, 12)) as pilot:
        await pilot.pause()
        axis = app.panels[2].render().plain.split("\n")[-1].split()
        assert "0.8" in axis
        assert "1" in axis
        assert "1.2" not in axis


@pytest.mark.parametrize("sampled", [1, 0])
async def test_tokens_the_environment_wrote_are_not_counted(sampled):
    history, live = recorded()
    live.sampled = msgspec.structs.replace(live.sampled, mask=np.full_like(live.sampled.mask, sampled))
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        await pilot.pause()
        assert bool(set("▁▂▃▄▅▆▇█") & set(app.panels[2].render().plain)) == bool(sampled)


async def test_nothing_is_drawn_again_for_the_cursor_or_for_what_is_drawn_already(monkeypatch):
    drawn = []
    monkeypatch.setattr("rlplay.ui.plot.curve_view.curves", lambda *given: drawn.append(given) or _draw(*given))
    history, live = recorded()
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        await pilot.pause()
        before = len(drawn)
        app.panels[0].focus()
        await pilot.press("left", "left", "left")
        app.query_one(CurvePanels).show(history, live, CHOSEN)
        await pilot.pause()
        assert before > 0
        assert len(drawn) == before
        history.add(msgspec.structs.replace(synthetic_update(9)[-1], update=9))
        app.query_one(CurvePanels).show(history, live, CHOSEN)
        await pilot.pause()
        assert len(drawn) > before


def _draw(*given):
    from rlplay.ui.plot.drawn_curves import curves

    return curves(*given)


async def test_sixteen_colours_have_no_tints():
    history, live = recorded()
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        app.theme = "ansi-dark"
        app.panels[0].focus()
        await pilot.press("left")
        styles = {str(span.style) for span in app.panels[0].render().spans}
        assert "reverse" in styles
        assert not any(style.startswith("on ") for style in styles)


async def test_what_was_rewound_away_stays_in_sight():
    history, live = recorded(8)
    history.add(Rewound(update=3, abandoned=8))
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        await pilot.pause()
        content = app.panels[0].render()
        axis = content.plain.split("\n")[-1]
        assert axis.split() == ["1", "2", "↶", "4", "6", "8"], "not the mark of a change"
        grey = "".join(content.plain[span.start : span.end] for span in content.spans if span.style == GHOST)
        assert any("\u2801" <= character <= "\u28ff" for character in grey)
        assert title(app.panels[0]).startswith(f"Reward ━ {history.series('reward')[1][2]:.3g} ·")


async def test_what_was_done_stays_in_sight_at_the_start_too():
    history, _ = recorded(8)
    history.add(Rewound(update=0, abandoned=8))
    app = Host(history)
    async with app.run_test(size=(160, 12)) as pilot:
        await pilot.pause()
        content = app.panels[0].render()
        assert GHOST in {str(span.style) for span in content.spans if span.end < content.plain.index("\n")}
        assert content.plain.split("\n")[-1].split() == ["↶", "2", "4", "6", "8"], "where it went back to"


async def test_a_run_with_nan_is_still_drawn():
    history, live = recorded(3)
    broken = next(record for record in synthetic_update(4) if isinstance(record, Finished))
    history.add(msgspec.structs.replace(broken, metrics=dict.fromkeys(broken.metrics, float("nan"))))
    live.steps = [
        msgspec.structs.replace(step, importance_ratio=np.full_like(step.importance_ratio, np.nan))
        for step in live.steps
        if isinstance(step, Stepped)
    ]
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        await pilot.pause()
        assert title(app.panels[0]).startswith("Reward ━ nan ·")
        assert "×" in app.panels[0].render().plain


async def test_of_two_kl_of_different_size_one_is_drawn_and_one_is_a_sparkline():
    history, live = History(), None
    for number in range(1, 6):
        finished = synthetic_update(number)[-1]
        numbers = {**finished.metrics, "kl": 2.0 * number, "kl_old": 0.01 * number}
        history.add(msgspec.structs.replace(finished, metrics=numbers))
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        await pilot.pause()
        assert app.panels[1].render().plain.split("\n")[0].split()[0] == "10"
        assert [curve.style for curve in KL.series(app.panels[1].source)] == [FIRST]
        assert subtitle(app.panels[1]) == "to old ▂▃▅▆█ 0.05 nats · k3", "heights are shares of the largest value"
        app.panels[1].focus()
        await pilot.press("left", "left")
        assert subtitle(app.panels[1]).startswith("to old ▂▃▅▆█ 0.04")


def share(rewards: list[float], means: list[float], stds: list[float]) -> PlotData:
    """A run whose shown update has these rewards."""
    update = Update(len(means))
    for record in synthetic_update(len(means)):
        update.add(record)
    update.scored = msgspec.structs.replace(update.scored, rewards=np.array(rewards, dtype=np.float32))
    named = {"reward": means, "reward_std": stds, "reward_p10": means, "reward_p90": means}
    rows = [(0, name, at, value) for name, values in named.items() for at, value in enumerate(values, 1)]
    return PlotData(History.of(rows, []), update, CHOSEN, shown=update)


def test_a_reward_of_zeros_and_ones_is_the_share_of_right_answers():
    given = [[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    means, stds = [float(np.mean(each)) for each in given], [float(np.std(each, ddof=1)) for each in given]
    source = share([0.0, 1.0, 1.0, 0.0], means, stds)
    (curve,) = REWARD.series(source)
    assert (curve.band, curve.area, curve.ends) == (None, "under", (0.0, 1.0))
    assert REWARD.titles(source, None, False)[0].plain == f"Reward ━ 0{SHARE}"
    for other in (share([0.5, 1.0], means, stds), share([0.0, 1.0], means, [stds[0], 0.1, stds[2]]),
                  share([0.0, 1.0], [2.0, *means[1:]], stds)):  # fmt: skip
        (curve,) = REWARD.series(other)
        assert curve.band is not None
        assert curve.ends == ()
        assert REWARD.titles(other, None, False)[0].plain.endswith(SHADE)


def test_the_band_of_other_rewards_holds_what_is_recorded():
    history, live = recorded()
    (curve, _) = REWARD.series(PlotData(history, live, CHOSEN, shown=live))
    assert curve.band == (history.series("reward_p10")[1], history.series("reward_p90")[1])
    assert history.series("reward_p90")[1][-1] == pytest.approx(np.quantile(live.scored.rewards, 0.9))


def test_a_reward_that_is_put_up_has_its_band() -> None:
    assert single("reward") == REWARD
    assert REWARD.traces[0].band is not None
    assert single("kl").traces[0].band is None


def test_of_several_discarded_parts_the_latest_is_drawn_and_named():
    history, live = recorded(8)
    history.add(Rewound(update=3, abandoned=8))
    for number in range(4, 7):
        history.add(synthetic_update(number, 1)[-1])
    history.add(Rewound(update=2, abandoned=6))
    source = PlotData(history, live, CHOSEN)
    (ghost,) = [curve for curve in REWARD.series(source) if curve.style == GHOST]
    assert (list(ghost.updates), ghost.name) == ([3, 4, 5, 6], BEFORE)
    assert REWARD.titles(source, None, False)[1].plain.endswith(f"{BEFORE} {number_text(ghost.values[-1])}")


@pytest.mark.parametrize(("estimator", "written"), [("k1", "≈0"), ("full", "≈0"), ("k3", "2e-7")])
async def test_a_kl_of_rounding_is_none(estimator, written):
    history = History()
    finished = synthetic_update(1)[-1]
    history.add(msgspec.structs.replace(finished, metrics={**finished.metrics, "kl": 2e-7, "policy_loss": 3e-8}))
    app = Host(history, None, kl_estimator=estimator)
    async with app.run_test(size=(160, 12)) as pilot:
        await pilot.pause()
        assert title(app.panels[1]) == f"KL to reference {written} · {estimator}"
        assert ("e-7" in app.panels[1].render().plain) == (estimator == "k3")
        app.panels[0].put(single("policy_loss"))
        assert title(app.panels[0]) == "Policy loss ≈0"


def test_a_curve_that_is_put_up_has_its_held_out_points():
    assert single("gold/helpful/mean").metrics == ("gold/helpful/mean", "eval_gold/helpful/mean")
    assert single("kl").metrics == ("kl",)
    source = PlotData(History.of([(0, "eval_gold/helpful/mean", 5, 0.5)], []))
    drawn = single("gold/helpful/mean").draw(source, Size(40, 8), False)
    assert isinstance(drawn, Picture), "points alone are drawn, too"


async def test_advice_to_turn_a_setting_is_for_ones_own_run():
    history, live = recorded(steps=1)
    app = Host(history, not_ended(live.number))
    async with app.run_test(size=(160, 12)):
        curves = app.query_one(CurvePanels)
        curves.take(replace(curves.details, steered=False))
        curves.show(history, not_ended(live.number), CHOSEN)
        for panel in app.panels:
            panel.put(panel.view)
        assert Ratios().draw(app.panels[2].source, Size(40, 8), False) == ONE_STEP_HERE
        assert "Raise" not in ONE_STEP_HERE


def test_what_another_trainer_did_not_write_is_not_on_record():
    source = PlotData(recorded()[0], None, CHOSEN, foreign=True)
    assert source.missing("KL", ("kl", "kl_old")) == NOT_RECORDED
    assert Ratios().draw(source, Size(40, 8), False) == NOT_RECORDED
    assert Ratios().draw(replace(source, foreign=False), Size(40, 8), False) == NO_STEP


def test_a_curve_that_observe_light_leaves_out_says_so():
    history, live = recorded()
    source = PlotData(history, live, msgspec.structs.replace(CHOSEN, observe="light"))
    assert source.missing("KL", ("kl", "kl_old")) == LIGHT
    assert "observe=light" in LIGHT
    assert source.missing("Loss", ("loss",)) != LIGHT
    assert (
        PlotData(history, live, msgspec.structs.replace(CHOSEN, observe="full")).missing("KL", ("kl", "kl_old"))
        != LIGHT
    )


async def test_a_curve_without_points_has_no_gap_in_its_title():
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        source.records([synthetic_started(), *synthetic_sampling(1)])
        await settled(pilot)
        titles = [str(panel.border_title) for panel in app.panels.curves.seen]
        assert any(title.startswith("Length · ") for title in titles), "the lengths of the first batch"


def test_while_labels_are_awaited_an_empty_panel_names_their_key():
    assert PlotData(History(), awaited=True).coming(first_update("Reward")) == (
        "Reward of each update will be drawn here. `A`: your labels come first."
    )
