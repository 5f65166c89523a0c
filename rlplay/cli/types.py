"""The words that the command line takes, known without anything heavy: scenarios, algorithms, devices."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    _Word = click.ParamType[str]
    _Found = click.ParamType[Path]
    _Count = click.ParamType[int]
else:
    _Word = _Found = _Count = click.ParamType  # not generic at run time before click 8.4


class _Listed(_Word):
    """A word of a list, completed by the shell."""

    def names(self) -> Iterable[str]:
        """The words there are."""
        raise NotImplementedError

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """The names that go on from what is typed."""
        return [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]


class ScenarioName(_Listed):
    """A bundled scenario's name, completed by the shell, or a path; to play, a share code as well."""

    name = "scenario"

    def names(self) -> Iterable[str]:
        """The bundled ones."""
        from rlplay.scenario.names import bundled

        return bundled()

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that go on from what is typed; files as well, since a path is as good."""
        from rlplay.scenario.names import looks_like_path

        if looks_like_path(incomplete):
            return [CompletionItem(incomplete, type="file")]
        return super().shell_complete(ctx, param, incomplete)


class AlgorithmName(_Listed):
    """An algorithm's name, completed by the shell, or a file that describes one."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from rlplay.algorithms.named import preset

        try:
            preset(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return value

    def names(self) -> Iterable[str]:
        """Those of the registry."""
        from rlplay.algorithms.catalogue import PRESETS

        return PRESETS


class DeviceName(_Listed):
    """Where to compute. Whether this machine has it is known to the engine only, which is the one to load torch."""

    name = "device"
    known = ("auto", "cpu", "cuda", "mps", "xpu", "npu")
    several = known[2:]  # those of which a machine may have more than one

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse what names no device anywhere, such as tpu."""
        kind, colon, number = value.partition(":")
        if kind not in self.known or (colon and not (kind in self.several and number.isdecimal())):
            words = f"unknown device {value!r}; it is one of {', '.join(self.known)}, or numbered, as in cuda:1"
            self.fail(words, param, ctx)
        return value

    def names(self) -> Iterable[str]:
        """Those known to torch."""
        return self.known


class WholeNumber(_Count):
    """A number of something, or a port."""

    name = "number"

    def __init__(self, low: int, high: int | None = None) -> None:
        """From `low` to `high`, or without end."""
        self._low, self._high = low, high

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, in as few words as possible if it is none."""
        text = str(value)
        number = int(text) if text.isdecimal() else None
        if number is None or number < self._low or (self._high is not None and number > self._high):
            span = f"{self._low} or more" if self._high is None else f"from {self._low} to {self._high}"
            self.fail(f"it takes a whole number, {span}; got {text!r}", param, ctx)
        return number


class RunName(_Found):
    """A recorded run: a path, a name or a part of one, or `last`."""

    name = "run"

    def convert(
        self,
        value: str | Path,
        param: click.Parameter | None,  # noqa: ARG002 - click's signature
        ctx: click.Context | None,  # noqa: ARG002 - click's signature
    ) -> Path:
        """The run's file. Raises ValueError, one line, if no run or several fit."""
        from rlplay.paths import find_run

        return find_run(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """The names that go on from what is typed; files where none does."""
        from rlplay.paths import list_runs
        from rlplay.trace.text import visible

        # A name that cannot be shown as it is cannot be completed either: the shell would print it, or split it.
        runs = [name for name in (run.stem for run in list_runs()) if name == visible(name)]
        names = [name for name in ("last", *runs) if name.startswith(incomplete)]
        return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


SCENARIO, ALGORITHM, DEVICE, RUN = ScenarioName(), AlgorithmName(), DeviceName(), RunName()
PATH = click.Path()  # or a name: nothing is checked here, but the shell completes files
