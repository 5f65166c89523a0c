"""The pull map: its numbers are those of the records, its dots are where they belong, at every size."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rlplay.algorithms.setting_values import decoded
from rlplay.trace.history import History
from rlplay.trace.pulls import Pulls, pulls
from rlplay.trace.records import Stepped, spans
from rlplay.trace.update import Update
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.pull.pull_map import ALL_EQUAL, DENSE, DOWN, NO_STEP, SILENCED, SILENT, UP, PullMap, _cells, _name_axis
from rlplay.ui.pull.pull_plane import plane
from tests.recorded import synthetic_update
from tests.ui.stage import on_screen, settled, text_of, until


def recorded(steps: int = 4, upto: int | None = None) -> Update:
    update = Update(1)
    for record in synthetic_update(1, steps=steps)[:upto]:
        update.add(record)
    return update


SIZE = Size(60, 16)


def drawn(update: Update | None, size: Size = SIZE, **settings: object) -> Picture | str:
    return PullMap().draw(PlotData(History(), update, decoded({"algorithm": "grpo", **settings})), size, False)


@pytest.mark.parametrize("steps", [2, 4])
def test_the_points_are_the_sampled_tokens_of_the_last_step(steps: int) -> None:
    update = recorded(steps)
    found = pulls(update)
    assert found is not None
    assert update.sampled is not None
    assert update.credited is not None
    last = update.steps[-1]
    assert isinstance(last, Stepped)
    assert last.clip_state is not None
    expected, place = [], 0
    for row in last.rows.tolist():
        for token in range(int(update.sampled.offsets[row]), int(update.sampled.offsets[row + 1])):
            if update.sampled.mask[token] == 1:
                state = last.clip_state[place]
                expected.append((last.importance_ratio[place], update.credited.advantages[token], state != 0))
            place += 1
    assert list(zip(found.ratio, found.advantage, found.silent, strict=True)) == expected
    assert (found.step, found.steps) == (steps, steps)


def test_after_one_step_the_ratios_are_those_after_the_update() -> None:
    update = recorded(steps=1)
    found = pulls(update)
    assert found is not None
    assert update.sampled is not None
    assert update.finished is not None
    assert update.credited is not None
    assert found.step is None
    assert not found.silent.any()
    tokens = spans(update.sampled.offsets, update.finished.rows)
    old = update.sampled.old_logprobs[tokens].astype(np.float64)
    kept = update.sampled.mask[tokens] == 1
    assert found.ratio == pytest.approx(np.exp(update.finished.logprobs.astype(np.float64) - old)[kept])
    rose, good = found.ratio > 1, update.credited.advantages[tokens][kept] > 0
    moved = (found.ratio != 1) & (found.advantage != 0)
    assert found.along == pytest.approx(sum((rose == good) & moved) / sum(moved))


@pytest.mark.parametrize(("steps", "upto"), [(4, 3), (1, 4)])
def test_before_the_ratios_are_known_it_says_so(steps: int, upto: int) -> None:
    update = recorded(steps, upto)
    assert pulls(update) is None
    assert drawn(update) == NO_STEP
    assert drawn(None) == NO_STEP


def test_tokens_that_were_not_looked_at_again_are_not_drawn() -> None:
    *before, finished = synthetic_update(1, steps=1)
    update = Update(1)
    for record in (*before, msgspec.structs.replace(finished, logprobs=finished.logprobs * np.nan)):
        update.add(record)
    found = pulls(update)
    assert found is not None
    assert not len(found.ratio)
    assert found.along is None


@pytest.mark.parametrize("size", [Size(14, 3), Size(36, 8), Size(60, 16), Size(230, 60)])
@pytest.mark.parametrize("steps", [1, 4])
def test_it_fills_its_panel_and_no_more(size: Size, steps: int) -> None:
    picture = drawn(recorded(steps), size)
    assert isinstance(picture, Picture)
    assert [len(line) for line in picture.content.plain.split("\n")] == [size.width] * size.height


def test_dots_are_above_and_right_of_where_they_belong_and_coloured_by_sign() -> None:
    update = recorded()
    assert update.sampled is not None
    assert update.credited is not None
    last = update.steps[-1]
    width = len(last.importance_ratio)
    quiet = msgspec.structs.replace(
        last, importance_ratio=np.full(width, 1.1, dtype=np.float32), clip_state=np.zeros(width, dtype=np.int8)
    )
    update.steps[-1] = quiet
    update.credited = msgspec.structs.replace(
        update.credited, advantages=np.where(np.arange(update.tokens) % 2, 2.0, -1.0).astype(np.float32)
    )
    picture = drawn(update)
    assert isinstance(picture, Picture)
    rows = picture.content.plain.split("\n")
    dotted = [at for at, row in enumerate(rows) if set(row) & set(DENSE)]
    assert dotted == [0, 14], "A = 2 is the top, A = −1 the bottom"
    for at in dotted:
        columns = [column for column, cell in enumerate(rows[at]) if cell in DENSE]
        assert len(columns) == 1
        assert columns[0] == pytest.approx(picture.frame.column(1.1), abs=1), "places are finer than cells"
    found = {
        str(s.style): picture.content.plain[s.start : s.end] for s in picture.content.spans if "scale" in str(s.style)
    }
    assert set(found) == {UP, DOWN}


@pytest.mark.parametrize(("tokens", "sign"), [(1, "•"), (2, "•"), (3, "●"), (9, "●"), (10, "█")])
def test_a_dot_is_larger_the_more_tokens_it_has(tokens: int, sign: str) -> None:
    found = Pulls(
        np.full(tokens + 1, 1.0), np.array([2.0] * tokens + [-1.0]), np.zeros(tokens + 1, dtype=bool), None, None, 0.0
    )
    cells, _ = _cells(found, plane(found, SIZE), ())
    assert sign in cells[0]


def test_without_advantages_nothing_is_pulled() -> None:
    update = recorded()
    assert update.credited is not None
    update.credited = msgspec.structs.replace(update.credited, advantages=update.credited.advantages * 0)
    assert drawn(update) == ALL_EQUAL


def test_clipped_tokens_and_the_band_are_marked_only_where_something_clips() -> None:
    update = recorded()
    clipped, other = drawn(update, epsilon=0.05), drawn(update, surrogate="logp")
    assert isinstance(clipped, Picture)
    assert isinstance(other, Picture)
    assert SILENT in {str(span.style) for span in clipped.content.spans}
    assert SILENCED in clipped.content.plain
    assert "0.95" in clipped.content.plain.split("\n")[-1]
    assert "0.95" not in other.content.plain.split("\n")[-1]


async def test_the_key_puts_it_up_and_one_step_shows_it_in_place_of_the_ratios() -> None:
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        source.records(synthetic_update(1, steps=1))
        await settled(pilot)
        assert str(app.panels.curves.panels[2].border_title) == "Pull map · after the update"
        assert "A > 0" in str(app.panels.curves.panels[2].border_subtitle)
        await pilot.press("P")
        await until(pilot, lambda: any(isinstance(panel.view, PullMap) for panel in app.panels.curves.panels))
        panel = next(panel for panel in app.panels.curves.panels if isinstance(panel.view, PullMap))
        assert set(text_of(panel)) & set(DENSE)


async def test_the_map_of_the_last_update_stays_until_the_next_has_its_own() -> None:
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        source.update(1, steps=1)
        await settled(pilot)
        source.records(synthetic_update(2, steps=1)[:-1])
        await settled(pilot)
        panel = app.panels.curves.panels[2]
        assert str(panel.border_title) == "Pull map · after update 1"
        assert set(text_of(panel)) & set(DENSE)
        source.records(synthetic_update(2, steps=1)[-1:])
        await settled(pilot)
        assert str(panel.border_title) == "Pull map · after the update"


def test_without_colours_the_key_says_where_each_sign_is() -> None:
    source = PlotData(History(), recorded(1), decoded({"algorithm": "grpo"}), plain=True)
    assert "above ┈ A > 0, below A < 0" in PullMap().titles(source, None, False)[1].plain


@pytest.mark.parametrize(
    ("labels", "named"),
    [(["", "3", "", "0"], "A3 0"), (["3", "", "0", ""], "3 0 "), (["3", "", "", "", "0"], "3 A 0")],
)
def test_the_axis_is_named_apart_from_its_numbers(labels: list[str], named: str) -> None:
    _name_axis(labels)
    assert "".join(label or " " for label in labels) == named


@pytest.mark.parametrize("steps", [1, 4])
def test_tokens_counted_a_few_at_a_time_give_the_same_map(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    update = recorded(steps)
    whole = drawn(update)
    monkeypatch.setattr("rlplay.ui.pull.pull_map._AT_ONCE", 7)
    parts = drawn(update)
    assert isinstance(whole, Picture)
    assert isinstance(parts, Picture)
    assert parts.content.plain == whole.content.plain
    assert parts.content.spans == whole.content.spans


def test_numbers_kept_for_an_update_are_not_those_of_another_step() -> None:
    update = recorded()
    before, shares = pulls(update), (0.0, 1.0)
    assert before is not None
    last = update.steps[-1]
    for share in shares:
        clips = np.full(len(last.importance_ratio), int(share), dtype=np.int8)
        update.add(msgspec.structs.replace(last, clip_state=clips, importance_ratio=last.importance_ratio + share))
        found = pulls(update)
        assert found is not None
        assert found.silent_share == share
        assert found.reach == pytest.approx(np.quantile(np.abs(found.ratio.astype(np.float64) - 1), 0.98))
        assert (found.reach > before.reach) == (share > 0)
