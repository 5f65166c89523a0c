"""A script that trains when it is loaded is no file to take a reward function from."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.foreign.from_checkpoint.script import check_loads_quietly

REWARD = "def short(completions, **_):\n    return [-len(c) for c in completions]\n\n"


@pytest.mark.parametrize("text", [
    "trainer.train()", "if True:\n    result = make().train(resume=True)", "for each in runs:\n    print(each.train())",
])  # fmt: skip
def test_a_script_that_trains_is_named_with_its_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(REWARD + text)
    with pytest.raises(ForeignRunError, match=rf"train\.py:{4 + text.count(chr(10))} trains as soon as"):
        check_loads_quietly(f"{file}:short")


@pytest.mark.parametrize("text", [
    'if __name__ == "__main__":\n    trainer.train()', "def main():\n    trainer.train()", "train()", "not Python",
])  # fmt: skip
def test_other_files_are_taken(text: str, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(REWARD + text)
    check_loads_quietly(f"{file}:short")
    check_loads_quietly("trl.rewards:think_format_reward")
