"""A page for each algorithm: its equations, what it changes, its names elsewhere, and a picture of its objective."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from html import escape

from docs.pages.loss_plot import loss_plot
from rlplay.algorithms.apply import resolve
from rlplay.algorithms.catalogue import PRESETS, Preset
from rlplay.algorithms.equations import difference, equation, terms
from rlplay.algorithms.trl_verl import trainer, verl


@lru_cache(maxsize=1)
def algorithm_pages() -> list[tuple[str, str, str]]:
    """Title, path and text of each, in the order of the catalogue."""
    return [(each.title, f"algorithms/{_file(each.name)}", "\n".join(_page(each))) for each in PRESETS.values()]


def _file(name: str) -> str:
    return name.replace("+", "p") + ".md"


def _page(preset: Preset) -> Iterator[str]:
    settings = resolve({"algorithm": preset.name})
    yield f"# {preset.title}\n"
    yield f"{preset.explained}\n"
    if preset.paper:
        yield f"Paper: {preset.paper}\n"
    yield f"```sh\nrlplay --algorithm {preset.name}\n```\n"
    yield "## Equations\n"
    yield _block(equation(left, right) for left, right in terms(settings).items())
    plot = loss_plot(settings)
    if plot is not None:
        yield f"## {plot.title}\n"
        yield f"{plot.svg}\n"
        yield f"{plot.caption}\n"
    if preset.after is not None:
        before = PRESETS[preset.after]
        yield f"## What differs from {before.title}\n"
        changes = difference(resolve({"algorithm": before.name}), settings)
        lines = [
            f"{sign} {equation(left, right)}"
            for left, old, new in changes
            for sign, right in (("-", old), ("+", new))
            if right
        ]
        yield _block(lines or ["The equations are the same; other settings differ."], "diff")
        yield f"[{before.title}]({_file(before.name)}) is its predecessor.\n"
    called = [f"{name}: `{said}`" for name, said in (("TRL", trainer(settings)), ("verl", verl(settings))) if said]
    if called:
        yield "## In other libraries\n"
        yield "\n".join(f"- {each}" for each in called)


def _block(lines: Iterator[str] | list[str], kind: str = "") -> str:
    return f'<pre class="equations {kind}"><code>{escape(chr(10).join(lines))}</code></pre>\n'
