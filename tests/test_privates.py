"""Private names of other libraries are used in modules named `compat` alone."""

from __future__ import annotations

import ast

import pytest

from tests.privates import classes, foreign, members, modules, overridden, used

DOCUMENTED = {
    "rlplay.containment": {"_exit"},  # os._exit, which Python documents under this name
    # Keys in files that W&B, trackio and transformers write.
    "rlplay.foreign.curve_files.rows": {"_type", "_name_or_path"},
    "rlplay.foreign.curve_files.text_tables": {"_step"},
    "rlplay.trace.over_steps": {"_s"},  # how the names of verl's seconds end
    # Texts that occur in pickles, which are compared and never looked up.
    "rlplay.foreign.torch_file": {
        "_codecs", "_frombuffer", "_rebuild_tensor", "_rebuild_tensor_v2", "_reconstruct", "_reconstructor",
    },
}  # fmt: skip
"""Names with an underscore that are public all the same."""


def compat(module: str) -> bool:
    """Whether a module may use private names."""
    return module.rpartition(".")[2] == "compat"


@pytest.mark.parametrize("module", [name for name in modules() if not compat(name)])
def test_a_module_uses_no_private_name_of_another_library(module: str) -> None:
    assert foreign(module) == DOCUMENTED.get(module, set())


def test_no_class_overrides_a_private_name_of_another_library() -> None:
    found = {
        (kind.__qualname__, name, where)
        for module in modules()
        if module != "rlplay.__main__"
        for kind in classes(module)
        for name, where in overridden(kind).items()
    }
    assert {each for each in found if not compat(each[2])} == set()
    assert ("OverAnother", "_compositor_refresh", "rlplay.ui.compat") not in found, "it has no base of Textual"
    assert ("SortScreen", "_compositor_refresh", "rlplay.ui.compat") in found


def test_every_way_to_use_a_name_is_found() -> None:
    source = """
import other._module
from other import _function
from other._package import thing
thing._attribute = getattr(thing, "_named")
thing.__class__, _, f"{thing}_more"
"""
    assert set(used(ast.parse(source))) == {"_module", "_function", "_package", "_attribute", "_named"}


class _Base:
    _of_class = 1

    def __init__(self) -> None:
        self._of_instance: int = 2
        self.public = _local = 3

    def _method(self) -> None:
        """Do nothing."""


def test_what_a_class_has_is_found_in_its_source() -> None:
    assert members(_Base) == {"_of_class", "_of_instance", "_method"}
