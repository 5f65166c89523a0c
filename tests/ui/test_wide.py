"""A terminal that says it is absurdly wide."""

import os
import shutil
import sys

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has another driver")
def test_no_more_is_drawn_than_a_display_can_hold(monkeypatch):
    from rlplay.ui.terminal.compat import LARGEST, SuspendedDriver

    driver = object.__new__(SuspendedDriver)
    for found, drawn in (((160, 45), (160, 45)), ((100_000, 45), (LARGEST[0], 45)), ((80, 100_000), (80, LARGEST[1]))):
        monkeypatch.setattr(shutil, "get_terminal_size", lambda size=found: os.terminal_size(size))
        assert driver._get_terminal_size() == drawn
