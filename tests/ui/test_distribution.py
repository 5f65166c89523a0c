"""Histograms of one line: what each bar counts, and in which frames they are."""

from __future__ import annotations

import numpy as np
import pytest

from rlplay.trace.lenses import LENSES
from rlplay.trace.update import Update
from rlplay.ui.format.bars import BARS, distribution, heights
from rlplay.ui.format.legend import legend
from rlplay.ui.parts.line_panel import CORNERS
from rlplay.ui.theme.inks import STEPS, levels, palette
from rlplay.ui.theme.themes import DARK
from rlplay.ui.tokens.facts import Facts
from tests.recorded import synthetic_update
from tests.ui.curve_panels import title
from tests.ui.stage import on_screen, settled


def test_each_bin_of_whole_numbers_counts_as_many_of_them() -> None:
    lengths = np.array([4, 4, 4, 4, 5, 7, 7, 8])
    assert distribution(lengths, 20) == "4 █▂ ▄▂ 8"
    wide = np.arange(0, 25)  # 25 values in at most 12 bins: 9 bins of three, the last of one
    assert distribution(wide, 40) == f"0 {'█' * 8}{BARS[3]} 24"


def test_fractions_have_equal_bins_from_the_smallest_to_the_largest() -> None:
    values = np.array([0.0, 0.05, 0.1, 0.55, 1.0, np.nan])
    assert distribution(values, 10) == "0 █  ▃ ▃ 1"
    assert distribution(-values, 11).startswith("−1 ")


@pytest.mark.parametrize(
    ("values", "room", "words"),
    [([], 20, ""), ([np.nan], 20, ""), ([24, 24], 20, "all 24"), ([24, 24], 5, ""), ([0, 0.5, 1], 7, ""),
     ([0, 1, 1], 7, "0 ▄█ 1"), ([0, 1], 5, ""), ([0, 100], 9, "")],
)  # fmt: skip
def test_equal_values_are_written_out_and_without_room_there_is_nothing(values, room, words) -> None:
    assert distribution(np.array(values, dtype=float), room) == words


@pytest.mark.parametrize("room", range(40))
def test_it_never_takes_more_room_than_there_is(room: int) -> None:
    for values in (np.linspace(-1.25, 3.75, 40), np.arange(7, 1300, 9), np.array([0, 1])):
        assert len(distribution(values, room)) <= room


def test_a_bar_is_as_high_as_its_share_of_the_highest() -> None:
    assert heights([0, 1, 4, 8, 1000]) == " ▁▁▁█"
    assert heights([1, 2, 4, 8]) == "▁▂▄█"
    assert heights([0, 0]) == "  "


@pytest.mark.parametrize("name", ["advantages", "importance_ratio", "entropy"])
def test_the_colour_scale_counts_the_sampled_tokens_of_each_shade(name: str) -> None:
    update = Update(3)
    for record in synthetic_update(3):
        update.add(record)
    assert update.sampled is not None
    update.sampled.mask[:5] = 0
    lens, values = LENSES[name], LENSES[name].values(update)
    assert values is not None
    own = [level for level, mine in zip(levels(lens, values), update.sampled.mask, strict=True) if mine]
    lowest = -STEPS if lens.two_sided else 0
    counts = Facts(update).shades(lens).tolist()
    assert counts == [own.count(level) for level in range(lowest, STEPS + 1)]
    colours = palette({"primary": DARK.primary, "background": DARK.background, "foreground": DARK.foreground,
                       "text-muted": "#868e9b", "warning": DARK.warning, "error": DARK.error,
                       "success": DARK.success})  # fmt: skip
    assert legend(lens, colours, True, counts=counts).plain.endswith(f" · {heights(counts)}")
    assert heights(counts) not in legend(lens, colours, True, room=26, counts=counts).plain


async def test_answers_and_length_show_the_update_on_the_screen() -> None:
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        await settled(pilot)
        assert title(app.panels.rollouts).strip() == "Answers", "nothing is counted yet"
        source.update(1, length=20)
        source.update(2, length=20)
        await settled(pilot)
        update = app.play.session.shown
        assert update is not None
        room = app.panels.rollouts.outer_size.width - CORNERS - len("Answers · ")
        assert title(app.panels.rollouts).strip() == f"Answers · {distribution(update.scored.rewards, room)}"
        length = next(panel for panel in app.panels.curves.panels if panel.view.title == "Length")
        lengths = np.diff(update.sampled.offsets)
        assert title(length).endswith(f" · {distribution(lengths, 11)}")
        await app.play.perform("sort", "length")
        await settled(pilot)
        assert title(app.panels.rollouts).strip() == f"Answers · {distribution(lengths, room)}"
        await app.play.perform("find", "length>0")
        await settled(pilot)
        assert "█" not in title(app.panels.rollouts), "the number of matches is there"


async def test_a_narrow_frame_drops_it_where_it_does_not_fit() -> None:
    async with on_screen(2, size=(80, 24)) as (app, _, _):
        assert title(app.panels.rollouts).strip() == "Answers", (
            "rewards are fractions: two bars would not show their shape"
        )


@pytest.mark.parametrize(("name", "shown"), [
    ("probability", "0 .44 .75 .94 1"),
    ("entropy", "0 .19 .75 1.7 3 nats"),
    ("ref_kl", "0 .06 .25 .56 1 nats"),
])  # fmt: skip
def test_where_shades_are_finer_at_one_end_their_edges_are_on_the_scale(name: str, shown: str) -> None:
    lens, colours = LENSES[name], palette({**DARK.to_color_system().generate(), **DARK.variables})
    assert legend(lens, colours, True).plain.split() == shown.split()
    assert legend(lens, colours, True, room=20).plain.split() == ["0", *shown.split()[4:]]
    for level, edge in enumerate(shown.split()[1:4], start=1):
        near = 0.006 if level < 3 or name != "entropy" else 0.06
        assert levels(lens, np.array([float(edge) - near, float(edge) + near])).tolist() == [level, level + 1]
