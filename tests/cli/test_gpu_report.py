"""`rlplay doctor --gpu`: no check ends the report, each compares what it says, and the exit status follows."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.cli import doctor
from rlplay.cli.gpu_report import checks, numbers, played, report, speed, trl_update
from rlplay.cli.gpu_report.checks import FAILS, GROUPS, NOT_TRIED, OK, REFERENCE, Check, Line, NotTriedError
from rlplay.cli.gpu_report.report import NoGpuError, shown
from tests.cli.command_line import called

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PROMPTS": 8, "ANSWERS": 3, "LENGTH": 9}.items():
        monkeypatch.setattr(played, name, value)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Line]]:
    """Reports on checks that do what their names say."""

    def of(*groups: tuple[str, ...], device: str = "cpu", patience: float = 60) -> list[Line]:
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.setattr(report, "_MODULE", "tests.cli.gpu_report_child")
        monkeypatch.setattr(report, "_PATIENCE", patience)
        monkeypatch.setattr(report, "REFERENCE", Check("reference", "nothing"))
        monkeypatch.setattr(report, "GROUPS", [tuple(Check(each, each) for each in group) for group in groups])
        return list(report.report(device, lambda what: None))

    return of


def test_no_check_ends_the_report(scripted: Callable[..., list[Line]]) -> None:
    found = scripted(("says",), ("says", "dies", "raises", "says"), ("says",), device="cuda")
    said = Line(OK, "says", "on cuda")
    killed = Line(FAILS, "dies", "its process ended with SIGKILL: Segmentation fault, or so")
    assert found == [said, said, killed, Line(FAILS, "raises", "no"), said, said]


def test_a_check_that_hangs_is_ended(scripted: Callable[..., list[Line]]) -> None:
    found = scripted(("says",), ("sleeps", "says"), patience=5)
    assert [line.status for line in found] == [OK, FAILS, OK]
    assert found[1].text == "no answer for 5 s, so it was ended"


def test_without_a_gpu_there_is_no_report(scripted: Callable[..., list[Line]]) -> None:
    with pytest.raises(NoGpuError, match="it is in the next room"):
        scripted(("says",), device="none")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_one_line_says_that_there_is_no_gpu(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    status, out, err = called(capsys, "doctor", "--gpu")
    assert (status, out) == (2, "")
    assert err.startswith("rlplay: there is no GPU to report on: torch ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("then", "status"), [(OK, 0), (NOT_TRIED, 0), (FAILS, 1)])
def test_the_exit_status_says_whether_something_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, then: str, status: int
) -> None:
    lines = [Line("", "device", "a GPU"), Line(then, "tokens", "so \x1b and so")]
    monkeypatch.setattr("rlplay.cli.gpu_report.command.report", lambda device, progress: iter(lines))
    found, out, err = called(capsys, "doctor", "--gpu")
    assert (found, err) == (status, "")
    assert "\x1b" not in out
    assert out.splitlines()[-1].startswith("1 of these fail;" if status else "all that was tried is right;")


def test_the_command_runs_checks_on_a_cpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(report, "GROUPS", ((*GROUPS[0], Check("tf32", "numbers:tf32")),))
    monkeypatch.setattr(report, "REFERENCE", Check("CPU's update", "numbers:no_such_check"))
    status, out, _ = called(capsys, "doctor", "--gpu", "--device", "cpu")
    assert status == 1, "the check that does not exist fails"
    assert re.search(r"^ +device +cpu, no GPU", out, re.MULTILINE)
    assert re.search(r"^FAILS     CPU's update   AttributeError: ", out, re.MULTILINE)
    assert "not tried tf32           TF32 is CUDA's" in out
    assert called(capsys, "doctor", "--device", "cpu")[0] == 2


@pytest.mark.slow
def test_the_whole_report_on_a_cpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    status, out, _ = called(capsys, "doctor", "--gpu", "--device", "cpu")
    assert status == 0, out
    assert {check.name for group in GROUPS for check in group} >= {"determinism", "TRL", "failed capture"}
    for name in ("tokens", "log-probs", "weights", "update", "sampling", "bfloat16"):
        assert re.search(rf"^ok        {name} ", out, re.MULTILINE), out
    assert len(out.splitlines()) <= 40


def test_a_line_is_at_most_80_columns_wide() -> None:
    text = shown(Line(NOT_TRIED, "failed capture", "word " * 40 + "a" * 300))
    assert text.startswith("not tried failed capture word word")
    assert max(map(len, text.splitlines())) <= 80
    assert all(line.startswith(" " * 25) for line in text.splitlines()[1:])


@pytest.mark.usefixtures("small")
def test_an_update_is_compared_with_that_of_the_cpu(tmp_path: Path) -> None:
    with pytest.raises(NotTriedError, match="failed"):
        list(numbers.update(CPU, tmp_path))
    assert list(numbers.reference(CPU, tmp_path)) == []
    assert [line.status for line in numbers.update(CPU, tmp_path)] == [OK] * 3
    kept = numbers.on_the_cpu(tmp_path)
    (largest,) = sorted((name for name in kept if kept[name].ndim == 2), key=lambda name: kept[name].size)[-1:]
    for changed, statuses in (
        ({"old_logprobs": kept["old_logprobs"] + np.float32(2e-4)}, [OK, FAILS, OK]),
        ({largest: kept[largest] + np.float32(1e-5)}, [OK, OK, FAILS]),
        ({"token_ids": np.roll(kept["token_ids"], 1)}, [FAILS]),
    ):
        np.savez(tmp_path / "cpu.npz", **(kept | changed))
        assert [line.status for line in numbers.update(CPU, tmp_path)] == statuses


@pytest.mark.usefixtures("small")
def test_bfloat16_is_tried_in_an_update(tmp_path: Path) -> None:
    list(numbers.reference(CPU, tmp_path))
    (line,) = numbers.bfloat16(CPU, tmp_path)
    assert line.status == OK
    (most,) = re.findall(r"up to (\S+), on average", line.text)
    assert 0.01 < float(most) < 1


@pytest.mark.parametrize("check", [numbers.tf32, numbers.determinism])
def test_a_cpu_has_no_choice(check: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(NotTriedError):
        list(check(CPU, tmp_path))


@pytest.mark.usefixtures("small")
def test_times_are_those_of_an_update_and_of_sampling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_WARM_UP": 1, "_MEASURED": 1, "_ROUNDS": 1, "_TOKENS": 6}.items():
        monkeypatch.setattr(speed, name, value)
    update, waits, memory = speed.update(CPU, tmp_path)
    assert (update.status, waits.status, memory.status) == (OK, NOT_TRIED, NOT_TRIED)
    (whole,) = re.findall(r"^(\d+) ms", update.text)
    parts = [int(each) for each in re.findall(r"[a-z] (\d+)", update.text.partition(": ")[2])]
    assert 0 < sum(parts) <= int(whole) + len(parts)
    (sampling,) = speed.sampling(CPU, tmp_path)
    rates = [float(each.replace(",", "")) for each in re.findall(r" ([\d,]+)(?:,|$)", sampling.text)]
    assert len(rates) == 2
    assert min(rates) > 0


@pytest.mark.usefixtures("small")
def test_trl_is_no_check_of_rlplay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(device: torch.device, folder: Path) -> list[float]:
        raise RuntimeError("theirs")

    monkeypatch.setattr(trl_update, "find_spec", lambda name: None)
    with pytest.raises(NotTriedError, match="not installed"):
        list(trl_update.update(CPU, tmp_path))
    monkeypatch.setattr(trl_update, "find_spec", bool)
    monkeypatch.setattr(trl_update, "version", lambda name: "1.16.0")
    monkeypatch.setattr(trl_update, "_trained", broken)
    with pytest.raises(NotTriedError, match=r"TRL 1\.16\.0 raised RuntimeError: theirs"):
        list(trl_update.update(CPU, tmp_path))
    monkeypatch.setattr(trl_update, "_trained", lambda device, folder: [9.0] * 5)
    (line,) = trl_update.update(CPU, tmp_path)
    assert "9000 ms with TRL 1.16.0" in line.text


def test_every_check_is_there() -> None:
    for check in (REFERENCE, *(each for group in GROUPS for each in group)):
        module, _, name = check.place.partition(":")
        assert callable(getattr(__import__(f"{checks.__package__}.{module}", fromlist=[name]), name))


def test_waits_are_those_that_torch_warns_of(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[str] = []

    def advance() -> None:
        for said in ["called a synchronizing CUDA operation"] * 3 + ["something else"]:
            warnings.warn(said, stacklevel=1)

    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    line = speed._waits(torch.device("cuda"), advance)
    assert line == Line(OK, "waits", "3 in an update, copies to the host included")
    assert modes == ["warn", "default"]


def test_the_doctor_names_the_report_where_there_is_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any("--gpu" in line for line in doctor._devices()) == torch.cuda.is_available()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "GPU")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(total_memory=2**34))
    lines = list(doctor._devices())
    assert "device        cuda:0, GPU, 16 GiB" in lines
    assert any("rlplay doctor --gpu" in line for line in lines)
