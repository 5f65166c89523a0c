"""The colours of curves and of the river: apart for every eye, in every theme, with few colours and with none."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from textual.color import Color

from rlplay.ui.plot.curve import GHOST
from rlplay.ui.river.belief_river import INKS, TEXTURES
from rlplay.ui.theme.curve_inks import CURVES, curve_inks
from rlplay.ui.theme.inks import contrast
from rlplay.ui.theme.themes import THEMES
from tests.ui.stage import on_screen

SIGHT = {
    "all cones": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}
"""On linear RGB, at full severity: Machado, Oliveira and Fernandes 2009, doi:10.1109/TVCG.2009.113, table 1."""
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)


def lab(color: Color, sight: str) -> np.ndarray:
    """The colour as an eye sees it, in CIELAB, where a distance of about 2 can just be noticed."""
    srgb = np.array(color.normalized)
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = TO_XYZ @ np.clip(np.asarray(SIGHT[sight]) @ linear, 0, 1) / WHITE
    x, y, z = np.where(seen > 216 / 24389, np.cbrt(seen), seen * 24389 / 3132 + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def apart(one: Color, other: Color) -> float:
    """The distance of two colours for the eye that sees the least of it."""
    return min(float(np.linalg.norm(lab(one, sight) - lab(other, sight))) for sight in SIGHT)


def inks(theme) -> dict[str, Color]:
    variables = {**theme.to_color_system().generate(), **theme.variables}
    return {name: Color.parse(ink) for name, ink in curve_inks(variables, theme.dark, theme.ansi).items()}


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_neighbours_stay_apart_in_every_kind_of_sight(theme):
    found = inks(theme)
    every = [found[name] for name in CURVES.values()]
    assert apart(every[0], every[1]) > 60, "a run's two curves, and two compared runs"
    assert min(apart(*pair) for pair in pairwise(every)) > 25, "bands of the river that touch"
    assert min(apart(*pair) for pair in combinations(every[: len(INKS)], 2)) > 14
    for name in CURVES.values():
        assert apart(found[name], found[f"{name}-shade"]) > 25, "a line on its area"


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_what_was_discarded_is_fainter_than_every_curve_and_still_there(theme):
    ground, found = Color.parse(theme.background), inks(theme)
    faint = contrast(found[GHOST.removeprefix("$")], ground)
    assert 1.7 < faint < min(contrast(found[name], ground) for name in CURVES.values())


def test_the_name_of_a_curve_and_of_a_band_can_be_read():
    for theme in THEMES:
        found, ground = inks(theme), Color.parse(theme.background)
        assert min(contrast(found[name], ground) for name in CURVES.values()) >= 4.5, theme.name


def test_bands_have_a_texture_each_where_there_is_no_colour():
    assert len(set(TEXTURES)) == len(INKS) == len(set(INKS))


@pytest.mark.parametrize("name", ["ansi-dark", "ansi-light", "nord", "solarized-light"])
async def test_every_theme_has_the_colours(name):
    async with on_screen() as (app, _, pilot):
        app.theme = name
        await pilot.pause()
        variables = app.theme_variables
        assert len({variables[ink] for ink in CURVES.values()}) == len(CURVES)
        assert {GHOST.removeprefix("$"), "scale-up", "scale-down"} <= variables.keys()


def test_with_256_colours_shades_are_grey():
    variables = {**THEMES[0].to_color_system().generate(), **THEMES[0].variables}
    shade = Color.parse(curve_inks(variables, True, False, 256)["curve-a-shade"])
    assert max(shade.rgb) == min(shade.rgb)
