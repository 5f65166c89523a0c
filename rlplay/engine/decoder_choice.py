"""Which way of sampling a model got, and why not a faster one: a sentence for the log."""

from __future__ import annotations

from rlplay.trace.numbers import compact


def differs(apart: float, tolerance: float) -> str:
    """Why a way of sampling is not taken whose log-probabilities are `apart` nats from those of single sequences."""
    return f"its log-probabilities are up to {compact(apart, 2)} nats off, and {compact(tolerance, 2)} are allowed"


def raised(error: Exception) -> str:
    """Why a way of sampling is not taken that ended in an error."""
    what = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {what}" if what else type(error).__name__


def choice(name: str, fixed: str) -> str:
    """How the model of this name is sampled on a GPU, `fixed` being why not from a cache of fixed size, or ""."""
    if not fixed:
        return f"{name} is sampled with a CUDA graph, from a cache of fixed size, as this gives the right numbers"
    return f"{name} is sampled without a CUDA graph, which is slower; from a cache of fixed size: {fixed}"


def recomputes(name: str, growing: str = "") -> str:
    """That a model reads its whole text for every token; `growing` is why it does not keep a cache."""
    why = f" ({growing})" if growing else ""
    return (
        f"{name} has no cache that sampling can rely on{why}; reading the whole text again for every token takes longer"
    )
