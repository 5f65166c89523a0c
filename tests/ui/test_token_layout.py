"""The lines of the answers where there is no room for them."""

import msgspec
import pytest

from rlplay.trace.records import Sampled
from rlplay.ui.layout.token_layout import Layout
from tests.recorded import synthetic_update


@pytest.mark.parametrize("width", [-2, 0, 1, 3])
def test_a_hidden_panel_lays_out_answers_and_prompts_without_room(width: int) -> None:
    sampled = next(record for record in synthetic_update(1) if isinstance(record, Sampled))
    sampled = msgspec.structs.replace(sampled, prompts=["a1"] * len(sampled.prompts))
    Layout().arrange(sampled, None, [0, 1], width, False)
