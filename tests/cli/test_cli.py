"""The command line: what each command prints, and its exit status."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from rich.cells import cell_len

from rlplay import __version__
from rlplay.algorithms.catalogue import PRESETS
from rlplay.cli import doctor
from rlplay.cli import main as cli
from rlplay.cli import play as cli_play
from rlplay.scenario.loader import bundled
from rlplay.scenario.share import Shared
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.ui.plot.several_runs import RUN_STYLES
from tests.cli.command_line import called
from tests.recorded import synthetic_run, synthetic_started
from tests.terminal import rlplay


@pytest.mark.parametrize("args", [["--help"], ["-h"], *([name, "--help"] for name in cli.cli.commands)])
def test_help_everywhere(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    status, out, _ = called(capsys, *args)
    assert status == 0
    assert out.startswith("Usage: rlplay")
    assert "..." not in out, "each command has one line that fits"


def test_help_begins_with_examples_and_commands(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = called(capsys, "--help")
    examples = [line[2:].split("  ")[0] for line in out.partition("Examples:\n")[2].split("\n\n")[0].splitlines()]
    assert len(out.partition("Play:")[0].splitlines()) <= 12
    assert out.index("Examples:") < out.index("Play:") < out.index("--model ")
    listed = [name for names in cli.GROUPS.values() for name in names]
    assert sorted(listed) == sorted(name for name, each in cli.cli.commands.items() if not each.hidden)
    assert len(examples) == 3
    for example in examples:
        words = example.split()
        assert words[0] == "rlplay"
        assert words[1:2] == [] or words[1] in cli.cli.commands


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert called(capsys, "--version") == (0, f"rlplay {__version__}\n", "")


def test_a_run_file_whose_name_is_not_utf_8_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = called(capsys, "run", "two-plus-two", "--out", "x\udcff")
    assert status == 2
    assert err == "rlplay: 'x\\udcff' is not UTF-8, the encoding of run files; choose another name\n"


def test_a_knob_to_show_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = called(capsys, "run", "two-plus-two", "--knobs", "beta", "--knobs", "epsilom")
    assert status == 2
    assert err == "rlplay: --knobs: unknown setting 'epsilom'; did you mean 'epsilon'?\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (Shared("flattery", step=7).code, "the share code leads to step 7 of a lesson on the screen: rlplay rlp1-"),
        (
            Shared("no-such", step=7).code,
            "the scenario 'no-such', which this rlplay does not have",
        ),
        (Shared("flattery", step=7).code[:-1], "the share code is damaged"),
        (Shared("flattery", step=999).code, "leads to step 999"),
    ],
)
def test_a_share_code_that_cannot_be_run_is_one_line(capsys: pytest.CaptureFixture[str], code: str, words: str) -> None:
    status, _, err = called(capsys, "run", code)
    assert status == 2
    assert words in err
    assert err.count("\n") == 1


def test_list_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    listed = called(capsys, "list")[1].splitlines()
    assert sorted(line.split()[0] for line in listed if line.startswith("  ")) == bundled()
    assert "First path: six lessons, about 30 minutes" in listed, "the chapters of the course"
    for name in bundled():
        status, out, _ = called(capsys, "show", name)
        assert status == 0
        assert f"rlplay run {name}" in out


def test_stages_are_shown_with_their_algorithms_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = called(capsys, "show", "rlhf")
    assert "stage      imitate, 10 updates: Supervised fine-tuning (" in out
    assert "stage      PPO, 20 updates: PPO for RLHF (" in out
    assert "           reward_weights = {reward_model: 1}\n" in out
    assert "algorithm " not in out


def test_algorithms(capsys: pytest.CaptureFixture[str]) -> None:
    status, listed, _ = called(capsys, "algorithms")
    assert status == 0
    for preset in PRESETS.values():
        assert f"\n{preset.name} " in listed
        assert preset.paper in listed
        assert "".join(preset.explained.split()) in "".join(listed.split())  # a line may end at a hyphen
    assert PRESETS["simpo"].differs in called(capsys, "algorithms", "simpo")[1]
    _, dr_grpo, _ = called(capsys, "algorithms", "dr-grpo")
    assert "  S = −min(w·A, clip(w, 0.8, 1.2)·A)\n" in dr_grpo
    assert "loss_type=dr_grpo" in dr_grpo
    assert "\n- L = 1/N Σᵢ 1/nᵢ Σₜ S\n+ L = 1/(N·32) Σᵢ Σₜ S\n" in dr_grpo
    assert "Against" not in called(capsys, "algorithms", "reinforce")[1]


def test_runs_are_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "home" / "runs"
    synthetic_run(folder / "2026-01-02_a.rlplay", updates=12)
    RunWriter.create(
        folder / "2026-01-01_much-longer.rlplay", msgspec.structs.replace(synthetic_started(), title="Nothing yet 東")
    ).close()
    (folder / "2026-01-03_broken.rlplay").write_text("no run")
    for run in folder.glob("*.rlplay"):  # whose names tell no time
        os.utime(run, (1.8e9, 1.8e9))
    status, out, err = called(capsys, "runs")
    head, *lines = out.splitlines()
    assert status == 0
    assert head.split() == ["written", "run", "scenario", "model", "update", "reward"]
    assert "cannot be read" in lines[0]
    assert "2026-01-03_broken" in err
    with RunReader(folder / "2026-01-02_a.rlplay") as reader:
        last = reader.history().latest("reward")
    assert lines[1].split()[-3:] == ["pocket", "12", f"{last:.3f}"]
    assert lines[2].split()[-3:] == ["pocket", "0", "–"]
    for line in lines[1:]:
        assert cell_len(line[: line.index("pocket")]) == head.index("model"), "columns stand under each other"
        assert cell_len(line) == len(head)


def test_runs_leave_out_what_a_run_is_called_for_where_there_is_no_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    synthetic_run(tmp_path / "home" / "runs" / "2026-01-02_03-04-05_learn-to-think.rlplay", updates=1)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    heads = []
    for columns in (120, 80, 70):
        monkeypatch.setenv("COLUMNS", str(columns))
        head, line = called(capsys, "runs")[1].splitlines()
        assert cell_len(line) <= columns
        heads.append(head.split())
    assert heads[0] == ["written", "run", "scenario", "model", "update", "reward"]
    assert heads[1] == ["written", "run", "model", "update", "reward"]
    assert heads[2] == ["run", "model", "update", "reward"]


def test_no_runs_yet(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = called(capsys, "runs")
    assert status == 0
    assert out.startswith("No runs yet")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["rnu"], "did you mean 'run'"),
        (["learn"], "did you mean 'learn-to-think'"),
        (["xyzzy"], "rlplay list"),
        (["algorithms", "grp"], "unknown algorithm 'grp'; nearest are grpo, "),
        (["algorithms", "grop"], "rlplay: unknown algorithm 'grop'"),
        (["run", "--algorithm", "xyzzy"], "; 'rlplay algorithms' lists all"),
        (["nowhere/mine.yaml"], "no such file"),
        (["run", "xyzzy"], "there is no scenario 'xyzzy'"),
        (["run", "--set", "beta"], "name=value"),
        (["run", "--set", "beta=high"], "got 'high'"),
        (["run", "--set", "=1"], "name=value"),
        (["run", "--set", "bta=0.1"], "setting 'bta'"),
        (["run", "--set", "xyzzy=0.1"], "unknown setting 'xyzzy'; 'rlplay settings' lists all"),
        (["run", "--set", "algorithm=grop"], "unknown algorithm 'grop'; nearest are grpo, "),
        (["run", "--reward", "foo"], "e.g. score.py:short; got 'foo'"),
        (["--reward", "score.py"], "e.g. score.py:short; got 'score.py'"),
        (["run", "--updates", "0"], "'--updates': it takes a whole number, 1 or more; got '0'"),
        (["--seed", "-1"], "'--seed': it takes a whole number, 0 or more; got '-1'"),
        (["serve", "--port", "80x"], "'--port': it takes a whole number, from 0 to 65535; got '80x'"),
        (["serve", "--port", "70000"], "from 0 to 65535; got '70000'"),
        (["--sed", "3"], "no such option '--sed'; did you mean '--seed'?"),
        (["run", "--modl", "x"], "did you mean '--model'?"),
        (["run", "--nope"], "'rlplay run --help' lists the options"),
        (["--nope"], "'rlplay --help' lists the options"),
        (["serve", "--set", "bta=0.1"], "setting 'bta'"),
        (["serve", "nowhere"], "there is no scenario 'nowhere'"),
        (["--device", "tpu"], "unknown device 'tpu'; it is one of auto, cpu, cuda"),
        (["resume", "last", "--device", "cuda:one"], "unknown device 'cuda:one'; it is one of auto, cpu, cuda"),
        (["run", "--device", "cpu:1"], "unknown device 'cpu:1'"),
        (["run", "--device", "cuda:"], "or numbered, as in cuda:1"),
        (["run", "learn-to-think", "--dataset", "nowhere.csv"], "--dataset needs --reward"),
        (["replay", "nowhere"], "no run 'nowhere'"),
        (["compare", "nowhere", "elsewhere"], "no run 'nowhere'"),
        (["compare"], "Missing argument 'RUN RUN…'. Example: rlplay compare RUN RUN"),
        (["export", "nowhere", "--format", "npz", "--out", "x"], "no run 'nowhere'"),
        (["export", "nowhere", "--format", "xls", "--out", "x"], "xls"),
        (["show"], "Missing argument 'SCENARIO'. Example: rlplay show dpo"),
        (["new"], "Missing argument 'NAME'. Example: rlplay new my-first"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str], args: list[str], words: str) -> None:
    status, out, err = called(capsys, *args)
    assert (status, out) == (2, "")
    assert err.startswith("rlplay: ")
    assert err.count("\n") == 1
    assert words in err


def test_an_existing_run_is_not_written_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.rlplay").write_text("")
    status, _, err = called(capsys, "run", "two-plus-two", "--out", str(tmp_path / "a.rlplay"))
    assert status == 2
    assert "exists already" in err


def test_a_defect_is_one_line_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(cli_play, "_scenario", broken)
    status, _, err = called(capsys, "run")
    assert status == 3
    assert err == "rlplay: ZeroDivisionError: oh (RLPLAY_DEBUG=1 shows where)\n"
    monkeypatch.setenv("RLPLAY_DEBUG", "1")
    assert "Traceback" in called(capsys, "run")[2]


def test_a_reader_that_has_gone_ends_it_without_a_word() -> None:
    with subprocess.Popen(rlplay("list"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as listing:
        assert listing.stdout is not None
        listing.stdout.close()
        _, err = listing.communicate()
    assert (listing.returncode, err) == (cli.INTERRUPTED, b"")


@pytest.mark.parametrize(("file", "text"), [("a.txt", "a.txt"), (None, "the output cannot be written")])
def test_what_the_machine_refuses_is_no_defect(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, file: str | None, text: str
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", file)

    monkeypatch.setattr(cli_play, "_scenario", full)
    assert called(capsys, "run") == (2, "", f"rlplay: {text}: No space left on device\n")


def test_an_unwritable_runs_folder_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert doctor._problem(tmp_path / "new" / "runs") == ""
    assert f"{tmp_path / 'file'} is not a folder; set RLPLAY_HOME" in doctor._problem(tmp_path / "file" / "runs")
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "CANNOT BE WRITTEN" in doctor._problem(tmp_path / "new" / "runs")


def test_options_open_the_playground(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(cli_play, "_scenario", lambda name, changes: seen.update(changes, name=name) or 1 / 0)
    (tmp_path / "mine.yaml").write_text("")
    for args, name in (
        (["--seed", "3"], None),
        (["flattery", "--seed", "3"], "flattery"),
        (["mine.yaml", "--seed", "3"], "mine.yaml"),
    ):
        CliRunner().invoke(cli.cli, args)
        assert (seen["name"], seen["seed"]) == (name, 3)


def test_names_complete_in_the_shell(tmp_path: Path) -> None:
    complete = ShellComplete(cli.cli, {}, "rlplay", "_RLPLAY_COMPLETE")

    def names(args: list[str], typed: str) -> set[str]:
        return {item.value for item in complete.get_completions(args, typed)}

    assert {"learn-to-think"} <= names([], "le")
    assert {"run", "runs"} <= names([], "ru")
    assert names(["run"], "two") == {"two-plus-two"}
    assert names(["run", "--algorithm"], "dr") == names(["algorithms"], "dr") == {"dr-grpo"}
    assert "--seed" in names([], "--se")
    assert names([], "--dev") | names(["--device"], "c") == {"--device", "cpu", "cuda"}
    synthetic_run(tmp_path / "home" / "runs" / "2026-01-02_a.rlplay", updates=1)
    assert names(["replay"], "2026") == names(["new", "x", "--from"], "2026") == {"2026-01-02_a"}
    assert names(["compare", "last"], "l") == {"last"}
    for option in ("--dataset", "--model", "--reward"):
        assert [item.type for item in complete.get_completions([option], "x")] == ["file"]


@pytest.mark.parametrize("command", [[], ["run"], ["demo"]])
@pytest.mark.parametrize(
    ("code", "words"), [("rlp1-AAAAAAAA", "damaged"), ("rlp7-AAAA", "upgrade"), ("rlq1-AAAA", "neither|no scenario")]
)
def test_a_share_code_that_cannot_be_used_costs_one_line(
    capsys: pytest.CaptureFixture[str], command: list[str], code: str, words: str
) -> None:
    status, out, err = called(capsys, *command, code)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert re.search(words, err)


def test_a_share_code_is_played_as_the_command_it_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Any] = []
    monkeypatch.setattr("rlplay.engine.headless.run", lambda job, *_: played.append(job.scenario) or 0)
    code = Shared("flattery", 3, None, "dr-grpo", {"epsilon": 0.1}).code
    line = "flattery --seed 3 --algorithm dr-grpo --set epsilon=0.1"
    for words in ([code], line.split()):
        with pytest.raises(SystemExit):
            cli.main(["run", *words, "--set", "beta=0.5"])
    first, second = played
    assert first == second
    assert first.seed == 3


def test_a_new_scenario_is_written_once_and_can_be_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert called(capsys, "new", "mine")[:2] == (0, "wrote mine.yaml; play it: rlplay mine.yaml\n")
    assert called(capsys, "show", "mine.yaml")[1].startswith("Mine: What do you want to find out?")
    for args, words in [
        (["mine"], "mine.yaml exists already"),
        (["other", "--from", "none"], "no run 'none'"),
        (["other", "--from", "mine.yaml"], "not a run file"),
        (["bad name/x"], "there is no folder 'bad name'; create it, or give only a name, e.g. x"),
        ([""], "letters or digits, e.g. my-first"),
        (["/"], "letters or digits, e.g. my-first"),
    ]:
        status, out, err = called(capsys, "new", *args)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert words in err
    assert not (tmp_path / "other.yaml").exists()


@pytest.mark.parametrize("count", [1, len(RUN_STYLES), len(RUN_STYLES) + 1])
def test_the_number_of_compared_runs_is_limited_to_the_distinguishable(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, count: int
) -> None:
    run = synthetic_run(tmp_path / "a.rlplay", updates=1)
    status, out, err = called(capsys, "compare", *[str(run)] * count)
    assert (status, out) == (2, "")
    fits = "the screen needs a terminal"  # which is asked for only once the number of runs is right
    assert (fits if count == len(RUN_STYLES) else f"compare takes 2 to 8 runs; got {count}") in err


@pytest.mark.parametrize(
    ("cores", "alone", "of_two"),
    [
        (1, "1 for the engine, which shares", "1 CPU thread each"),
        (8, "7 for the engine; 1 core is left", "4 CPU threads each"),
    ],
)
def test_doctor_says_how_many_threads_compute_and_why(
    monkeypatch: pytest.MonkeyPatch, cores: int, alone: str, of_two: str
) -> None:
    monkeypatch.setattr("rlplay.processes.cores", lambda: cores)
    device, threads, processes = doctor._cores()
    assert device.endswith("cpu, 1 core" if cores == 1 else f"cpu, {cores} cores")
    assert threads.startswith(f"threads       {alone}")
    assert processes.endswith(of_two)


def test_doctor_times_bfloat16(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = called(capsys, "doctor")
    (speed,) = re.findall(r"^bfloat16      (\S+) times the speed of float32", out, re.MULTILINE)
    assert float(speed) > 0


def test_doctor_says_how_fast_and_by_what_float32_is_multiplied(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out, _ = called(capsys, "doctor")
    assert re.search(r"^float32       matrix products of \d+ threads? at \d+ GFLOP/s by torch", out, re.MULTILINE)
    monkeypatch.setattr("rlplay.engine.onednn.rates", lambda: (100e9, 250e9))
    for faster, used in ((True, "oneDNN"), (False, "torch")):
        monkeypatch.setattr("rlplay.engine.onednn.is_faster", lambda faster=faster: faster)
        assert doctor._products().endswith(f"100 GFLOP/s by torch, 250 by oneDNN; linear layers use {used}")


def test_doctor_lists_missing_packages_instead_of_failing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("torch", "huggingface_hub", "huggingface_hub.constants"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(doctor, "_version", lambda name: None)
    status, out, _ = called(capsys, "doctor")
    assert status == 0
    assert "MISSING: pip install torch" in out
    assert "devices       torch cannot be imported" in out
    assert "textual-serve not installed, for rlplay serve" in out
    assert "downloads to" not in out
