"""Lets what other packages bring join the registries, once all of them are there."""

from __future__ import annotations

from functools import cache

from rlplay.trace.plugins import names


@cache
def join() -> None:
    """Add the statistics, metrics and algorithms of other packages; the first call does it. Tasks load by name.

    A process calls it before it looks anything up. Nothing is imported if no package brings any.
    """
    if not any(names(group) for group in ("rlplay.lenses", "rlplay.metrics", "rlplay.algorithms")):
        return
    from rlplay.algorithms.named import join_algorithms
    from rlplay.trace.lenses import join_lenses
    from rlplay.trace.metrics import join_metrics

    join_lenses()
    join_metrics()
    join_algorithms()
