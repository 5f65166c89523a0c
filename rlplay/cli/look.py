"""Commands that show or export something: a scenario, a recorded run, algorithms, the installation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlplay.cli.table import table
from rlplay.cli.trusting import TRUST, ask_trust
from rlplay.cli.types import ALGORITHM, DEVICE, RUN, SCENARIO, WholeNumber
from rlplay.trace.text import visible, visible_lines

if TYPE_CHECKING:
    from rlplay.trace.kinds import SomeSettings

FORMATS = ("html", "cast", "npz", "jsonl", "parquet", "tensorboard", "trl", "model")
"""The formats of an export."""
_OF_WHOLE_RUN = ("html", "cast", "trl")


def _echo(text: str) -> None:
    """Print text that may come from a foreign file."""
    click.echo(visible_lines(text))


@click.command(epilog="Example: rlplay show dpo")
@click.argument("scenario", type=SCENARIO)
def show(scenario: str) -> None:
    """Explain one scenario: what it asks, sets and expects."""
    from rlplay.scenario.claim import Expect
    from rlplay.scenario.loader import load
    from rlplay.scenario.script import parse

    found = load(scenario)
    _echo(f"{found.title}: {found.question}\n")
    if found.summary:
        _echo(click.wrap_text(found.summary, width=100) + "\n")
    if not found.stages:
        _echo(f"algorithm  {_algorithm(found.settings)}")
    _echo(f"task       {found.task or found.dataset or 'a world'}   model {found.model}   seed {found.seed}")
    _settings(found.settings)
    for stage in found.stages:
        algorithm = _algorithm(found.settings | stage.settings)
        data = f" on {stage.dataset}" if stage.dataset else ""
        _echo(f"stage      {stage.name}, {stage.updates} updates{data}: {algorithm}")
        _settings(stage.settings)
    claims = [step.text for step in parse(found.script) if isinstance(step, Expect)]
    for number, text in enumerate(claims):
        _echo(f"{'expects' if number == 0 else '':<11}{text}")
    _echo(f"\nPlay it: rlplay {scenario}      Check it: rlplay run {scenario}")


def _algorithm(chosen: SomeSettings) -> str:
    from rlplay.algorithms.named import preset

    named = preset(chosen.get("algorithm", "grpo"))
    return f"{named.title} ({named.paper})" if named.paper else named.title


def _settings(chosen: SomeSettings) -> None:
    from rlplay.algorithms.setting_values import written

    for name, value in chosen.items():
        if name != "algorithm":
            _echo(f"           {name} = {written(value)}")


@click.command(epilog="Example: rlplay export last --format jsonl --out run.jsonl")
@click.argument("recorded", metavar="RUN", type=RUN)
@click.option("--format", "kind", type=click.Choice(FORMATS), required=True, help="What to write.")
@click.option("--update", type=WholeNumber(1), metavar="N", help="Only this update's tokens, or the model after it.")
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="PATH", help="Where to write it.")
def export(recorded: Path, kind: Any, update: int | None, out: Path) -> None:
    """Write a run as a page, as a film, or for other tools.

    html is one page that replays the run, with its lesson, in any browser and without a network; cast a film of the
    terminal for asciinema. npz holds arrays, jsonl and parquet one completion per line or row, tensorboard the curves
    as an event folder, trl a Python script that trains with TRL under the same settings, model the trained policy as a
    folder that transformers loads.
    """
    if kind in _OF_WHOLE_RUN:
        if update is not None:
            raise click.UsageError(f"--update does not work with {kind}: it covers the whole run; omit it")
        _writer(kind)(recorded, out)
    elif kind == "model":
        from rlplay.engine.export_model import export_model

        taken = export_model(recorded, out, update, lambda what: click.echo(visible(what), err=True))
        _echo(f"wrote {out}, the policy after update {taken}")
        return
    else:
        from rlplay.export.tables import export as write

        write(recorded, kind, out, update)
    _echo(f"wrote {out}")


def _writer(kind: str) -> Callable[[Path, Path], None]:
    """What writes a format `_OF_WHOLE_RUN`; imported for it alone."""
    if kind == "html":
        from rlplay.export.html.page import export_html

        return export_html
    if kind == "cast":
        from rlplay.ui.cast import export_cast

        return export_cast
    from rlplay.export.trl.training_script import export_trl

    return export_trl


@click.command(epilog="Example: rlplay doctor --gpu > gpu.txt")
@click.option("--gpu", is_flag=True, help="Try the engine on a GPU instead, and print a report to paste into an issue.")
@click.option("--device", type=DEVICE, metavar="NAME", help="With --gpu: cuda:1, or cpu to see what the report does.")
def doctor(gpu: bool, device: str | None) -> int:
    """Check the installation: packages, devices, terminal, folders.

    With --gpu, it trains a few updates of the bundled model on a GPU, which takes a minute or two. Exit status then: 0
    all that was tried is right, 1 something fails, 2 there is no GPU.
    """
    if gpu:
        from rlplay.cli.gpu_report.command import gpu_report

        return gpu_report(device or "cuda")
    if device is not None:
        raise click.UsageError("--device goes with --gpu")
    from rlplay.cli.doctor import report

    for line in report():
        _echo(line)
    return 0


@click.command()
@click.argument("name", type=ALGORITHM, required=False)
@TRUST
def algorithms(name: str | None, trust: bool) -> None:
    """List the algorithms, or show the formulas of one.

    After the formulas come the differences from the algorithm that it builds on. The formula of your own function
    comes from running it.
    """
    from rlplay.algorithms.catalogue import FAMILIES, PRESETS
    from rlplay.scenario.trust import code_in
    from rlplay.trusted import place

    if name is not None:
        ask_trust([place(entry) for entry in code_in({"algorithm": name})], trust, "algorithm")
        for line in _written_out(name):
            _echo(line)
        return
    rows = [("NAME", "TITLE", "AFTER", "PAPER")]
    rows += [(p.name, p.title, p.after or "–", p.paper) for p in PRESETS.values()]
    indent = " " * (max(map(len, PRESETS)) + 2)
    head, *lines = table(rows)
    _echo(head)
    for family in FAMILIES:
        _echo(f"\n{family.upper()}")
        for line, preset in zip(lines, PRESETS.values(), strict=True):
            if preset.family == family:
                _echo(line)
                _echo(click.wrap_text(preset.explained, 110, indent, indent))
    _echo("\nThe formulas of one: rlplay algorithms NAME      Play it: rlplay --algorithm NAME")


def _written_out(name: str) -> Iterator[str]:
    from rlplay.algorithms.apply import resolve
    from rlplay.algorithms.equations import difference, equation, terms
    from rlplay.algorithms.named import preset as named
    from rlplay.algorithms.own_choices import allow_all
    from rlplay.algorithms.trl_verl import trainer, verl
    from rlplay.export.trl.limits import unsupported_setting

    settings, preset = resolve({"algorithm": name}), named(name)
    allow_all(settings)
    yield f"{preset.title}   {preset.paper}"
    yield preset.changes
    if preset.differs:
        yield preset.differs
    yield ""
    for left, right in terms(settings).items():
        yield f"  {equation(left, right)}"
    if called := trainer(settings):
        without = unsupported_setting(settings)
        yield f"\nTRL: {called}{f', without {without}' if without else ''}"
    if called := verl(settings):
        yield f"verl: {called}"
    if preset.after is not None:
        yield f"\nAgainst {named(preset.after).title}:"
        for left, old, new in difference(resolve({"algorithm": preset.after}), settings):
            yield from (f"{sign} {equation(left, right)}" for sign, right in (("-", old), ("+", new)) if right)


COMMANDS = (algorithms, show, export, doctor)
