"""The page on the user's own functions names exactly what they are given."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.named import preset
from rlplay.algorithms.own_choices import allow_all
from rlplay.algorithms.own_trial import ADVANTAGE_ARGUMENTS, SURROGATE_ARGUMENTS
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.symbols import Symbols
from rlplay.engine.tensors import Tensors

pytestmark = pytest.mark.usefixtures("trusts_all")

PAGE = (Path(__file__).parents[2] / "docs" / "own-algorithm.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `xp\.(\w+)\(([\w, ]+)\)` \| .+ \| (yes|no) \|$", re.M)


def offered(namespace: type) -> set[str]:
    return {name for name in dir(namespace) if not name.startswith("_")}


def test_the_table_names_what_the_namespaces_offer() -> None:
    rows = ROW.findall(PAGE)
    assert len(rows) == PAGE.count("`xp.") - PAGE.count("\n`xp.where(condition, one, other)`")
    names = [name for name, *_ in rows]
    assert len(names) == len(set(names))
    assert set(names) == offered(NumpyArrays) == offered(Tensors)
    assert {name for name, _, written in rows if written == "yes"} == offered(Symbols)


ARGUMENTS = {
    "x": np.array([[0.2, 0.7], [0.4, 0.9]]), "y": np.array([[0.5, 0.5], [0.5, 0.5]]), "low": 0.3, "high": 0.6,
    "mask": np.array([[True, True], [True, False]]), "condition": np.array([[True, False], [False, True]]),
    "group": np.array([0, 1]), "groups": 2, "counted": np.array([True, True]), "by": np.array([3.0, 1.0]),
    "q": 0.5, "name": "d",
}  # fmt: skip
OF_ANSWERS = ("group_mean", "group_std", "ranked", "sum_by", "lowest_by", "indices_like")


@pytest.mark.parametrize(("name", "arguments"), [(name, arguments) for name, arguments, _ in ROW.findall(PAGE)])
def test_each_is_called_as_the_table_says_and_agrees_in_numpy_and_torch(name: str, arguments: str) -> None:
    given = [ARGUMENTS[each] for each in arguments.split(", ")]
    if name in OF_ANSWERS:
        given[0] = np.array([0.2, 0.7])
    if name == "log_odds":
        given[0] = -given[0]
    tensors = [torch.from_numpy(each) if isinstance(each, np.ndarray) else each for each in given]
    found = getattr(NumpyArrays, name)(*given)
    as_tensor = getattr(Tensors(torch.zeros(1, dtype=torch.double)), name)(*tensors)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(as_tensor.numpy(), found, rtol=1e-12)


@pytest.mark.parametrize(
    ("head", "known"),
    [("a surrogate's argument", SURROGATE_ARGUMENTS), ("an advantage's argument", ADVANTAGE_ARGUMENTS)],
)
def test_the_tables_name_every_argument(head: str, known: tuple[str, ...]) -> None:
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.M)) == known


def test_its_example_is_an_algorithm(tmp_path: Path) -> None:
    python, yaml = re.findall(r"```\w+\n(.*?)```", PAGE, re.S)
    (tmp_path / "my.py").write_text(python)
    (tmp_path / "soft.yaml").write_text(yaml)
    row = preset(str(tmp_path / "soft.yaml"))
    assert row.title == "Soft GRPO"
    allow_all(Settings(surrogate=row.axes["surrogate"]))
