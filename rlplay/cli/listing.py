"""Commands that list what there is: scenarios, recorded runs."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlplay.cli.options import AS_JSON
from rlplay.cli.table import table
from rlplay.trace.text import visible_lines

if TYPE_CHECKING:
    from rlplay.printed import RecordedRun, Unreadable


@click.command("list")
@AS_JSON
def list_scenarios(as_json: bool) -> None:
    """List the lessons, chapter by chapter."""
    from rlplay.printed import ListedScenario, ScenarioList, json_line
    from rlplay.scenario.course import chapters
    from rlplay.scenario.loader import load

    listed = [
        ListedScenario(name=name, title=load(name).title, question=load(name).question, chapter=chapter.title)
        for chapter in chapters()
        for name in chapter.lessons
    ]
    if as_json:
        click.echo(json_line(ScenarioList(scenarios=listed)))
        return
    lines = iter(table([(each.name, each.question) for each in listed]))
    for chapter in chapters():
        click.echo(visible_lines(f"{chapter.title}: {chapter.about}" if chapter.about else chapter.title))
        for _ in chapter.lessons:
            click.echo(visible_lines(f"  {next(lines)}"))


@click.command()
@click.option("--sizes", is_flag=True, help="Show how much disk each run file and its snapshots take.")
@AS_JSON
def runs(sizes: bool, as_json: bool) -> None:
    """List the recorded runs, newest first."""
    from rlplay import paths
    from rlplay.printed import RunList, Unreadable, json_line

    found = [_described(path) for path in paths.list_runs()]
    broken = [each for each in found if isinstance(each, Unreadable)]
    if as_json:
        whole = [each for each in found if not isinstance(each, Unreadable)]
        click.echo(json_line(RunList(runs=whole, unreadable=broken)))
        return
    if not found:
        click.echo(visible_lines(f"No runs yet in {paths.runs_folder()}; 'rlplay' records one."))
        return
    for each in _table(found, sizes):
        click.echo(visible_lines(each))
    for problem in broken:
        click.echo(f"rlplay: {visible_lines(problem.problem)}", err=True)


def _described(path: Path) -> RecordedRun | Unreadable:
    from rlplay.printed import RecordedRun, Unreadable, number_or_null
    from rlplay.trace.files_on_disk import files_on_disk
    from rlplay.trace.runfile import RunReader
    from rlplay.trace.runfile_format import RunFileError

    taken = files_on_disk(path)
    about: dict[str, Any] = {
        "path": str(path), "name": path.stem, "run_bytes": taken.run_bytes, "snapshot_bytes": taken.snapshot_bytes,
        "written": time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(path.stat().st_mtime)),
    }  # fmt: skip
    try:
        with RunReader(path) as reader:
            return RecordedRun(
                title=reader.started.title, model=reader.started.model, update=max(reader.updates(), default=0),
                reward=number_or_null(reader.latest("reward")), **about,
            )  # fmt: skip
    except RunFileError as error:
        return Unreadable(problem=str(error), **about)


def _table(found: list[RecordedRun | Unreadable], sizes: bool) -> list[str]:
    from rlplay.printed import Unreadable
    from rlplay.trace.numbers import byte_size as size

    numbers = ("update", "reward", "file", "snapshots") if sizes else ("update", "reward")
    rows: list[tuple[str, ...]] = [("written", "run", "scenario", "model", *numbers)]
    for each in found:
        when = each.written[:16].replace("T", " ")
        disk = (size(each.run_bytes), size(each.snapshot_bytes)) if sizes else ()
        if isinstance(each, Unreadable):
            rows.append((when, each.name, "", "cannot be read", "", "", *disk))
        else:
            rows.append((when, each.name, each.title, each.model, str(each.update), _reward(each.reward), *disk))
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = table(_fitting(rows, room), right_aligned=numbers)
    if sizes:
        total = sum(each.run_bytes + each.snapshot_bytes for each in found)
        count = f"{len(found)} run{'s' * (len(found) > 1)}"
        lines.append(f"\n{size(total)} in {count}; 'rlplay rm RUN' deletes one, with --snapshots only its snapshots")
    return lines


def _reward(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".replace("-", "−")


def _fitting(rows: list[tuple[str, ...]], room: int | None) -> list[tuple[str, ...]]:
    """The rows, without columns that the run's name repeats if there is no room for them."""
    from rich.cells import cell_len

    for name in ("scenario", "written"):
        if room is None or max(map(cell_len, table(rows))) <= room:
            break
        at = rows[0].index(name)
        rows = [(*row[:at], *row[at + 1 :]) for row in rows]
    return rows


COMMANDS = (list_scenarios, runs)
