"""The types of command-line arguments: scenarios, algorithms, devices, runs. They import nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from rlplay.trace.text import quote

if TYPE_CHECKING:
    _Word = click.ParamType[str]
    _Found = click.ParamType[Path]
    _Count = click.ParamType[int]
else:
    _Word = _Found = _Count = click.ParamType  # not generic at run time before click 8.4


_DIGITS = 18
"""The most digits of a number, which keep it within 64 bits."""


class _Listed(_Word):
    """A word from a list, which the shell completes."""

    def names(self) -> Iterable[str]:
        """The words of the list."""
        raise NotImplementedError

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """The names that start with what the user typed."""
        return [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]


class ScenarioName(_Listed):
    """The name of a bundled scenario, which the shell completes, or a path; for playing, also a share code."""

    name = "scenario"

    def names(self) -> Iterable[str]:
        """The bundled scenarios."""
        from rlplay.scenario.names import bundled

        return bundled()

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that start with what the user typed, or files if it looks like a path."""
        from rlplay.scenario.names import looks_like_path

        if looks_like_path(incomplete):
            return [CompletionItem(incomplete, type="file")]
        return super().shell_complete(ctx, param, incomplete)


class AlgorithmName(_Listed):
    """The name of an algorithm, which the shell completes, or a file that describes one."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from rlplay.algorithms.named import preset

        try:
            preset(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return value

    def names(self) -> Iterable[str]:
        """The algorithms of the catalogue."""
        from rlplay.algorithms.catalogue import PRESETS

        return PRESETS


class SettingName(_Listed):
    """The name of a setting, which the shell completes."""

    name = "setting"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse unknown names; `max-kl` is `max_kl`."""
        from rlplay.algorithms.setting_values import unknown

        name = value.strip().replace("-", "_")
        if name not in self.names():
            self.fail(unknown(name), param, ctx)
        return name

    def names(self) -> Iterable[str]:
        """All settings."""
        from rlplay.algorithms.knobs import KNOBS

        return KNOBS


class DeviceName(_Listed):
    """Where to compute. Only the engine, which loads torch, knows whether this machine has the device."""

    name = "device"
    known = ("auto", "cpu", "cuda", "mps", "xpu", "npu")
    several = known[2:]  # a machine may have more than one of these

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse names that no machine has, such as tpu."""
        kind, colon, number = value.partition(":")
        if kind not in self.known or (colon and not (kind in self.several and number.isascii() and number.isdecimal())):
            words = f"unknown device {quote(value)}; it is one of {', '.join(self.known)}, or numbered, as in cuda:1"
            self.fail(words, param, ctx)
        return value

    def names(self) -> Iterable[str]:
        """The devices that torch knows."""
        return self.known


class WholeNumber(_Count):
    """A count, or a port."""

    name = "number"

    def __init__(self, low: int, high: int | None = None) -> None:
        """From `low` to `high`, or without an upper bound."""
        self._low, self._high = low, high

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a short message if the text is not one."""
        text = str(value)
        number = int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None
        if number is None or number < self._low or (self._high is not None and number > self._high):
            span = f"{self._low} or more" if self._high is None else f"from {self._low} to {self._high}"
            self.fail(f"it takes a whole number, {span}; got {quote(text)}", param, ctx)
        return number


class RunName(_Found):
    """A recorded run: a path, a name, a part of a name, or `last`; or a folder that another trainer writes."""

    name = "run"
    whole = True
    """Whether a copy of another trainer's run is complete before it is used."""

    def convert(
        self,
        value: str | Path,
        param: click.Parameter | None,  # noqa: ARG002 - click's signature
        ctx: click.Context | None,  # noqa: ARG002 - click's signature
    ) -> Path:
        """The run's file; of another trainer's run, a copy. Raises ValueError, one line, if no run or several match."""
        from rlplay.foreign.copy import run_file

        return run_file(value, self.whole)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """The names that start with what the user typed; files if none does."""
        from rlplay.paths import list_runs
        from rlplay.trace.text import visible

        # The shell would print or split names with invisible characters, so these are not completed.
        runs = [name for name in (run.stem for run in list_runs()) if name == visible(name)]
        names = [name for name in ("last", *runs) if name.startswith(incomplete)]
        return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


class GrowingRun(RunName):
    """As `RunName`, for what goes on copying while it shows the beginning of a long run."""

    whole = False


class RunFile(RunName):
    """As `RunName`, but a run of rlplay or a copy of another trainer's; never that trainer's folder."""

    def convert(self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The run's file. Raises ValueError, one line, if no run or several match."""
        if Path(value).is_dir():
            self.fail(f"{value} is a folder; name a run file, or a run that 'rlplay runs' lists", param, ctx)
        return super().convert(value, param, ctx)


CURVES = click.option(
    "--curves",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Curves of the same run beside its tokens: TensorBoard, W&B, trackio and others; remembered.",
)
RUN_FILE, GROWING = RunFile(), GrowingRun()
SCENARIO, ALGORITHM, DEVICE, RUN = ScenarioName(), AlgorithmName(), DeviceName(), RunName()
SETTING = SettingName()
PATH = click.Path()  # or a name: click checks nothing, but the shell completes files
