"""Who sampled, in words, where that is not the policy."""

from __future__ import annotations

import numpy as np

from rlplay.algorithms.settings import Settings
from rlplay.trace.lenses_of_others import sampler_difference, staleness
from rlplay.trace.numbers import number
from rlplay.trace.update import Update


def sampled_by(update: Update, completion: int) -> str:
    """Which weights wrote an answer: "weights of update 2, 4 updates old"; "" where that is not on record."""
    old = staleness(update)
    if old is None or update.sampled is None or update.sampled.versions is None:
        return ""
    version = int(update.sampled.versions[completion])
    of = f"weights of update {version}" if version else "weights of the start"
    return f"sampled by the {of}, {aged(int(old[completion]))}" if old[completion] else "sampled by the newest weights"


def aged(updates: float) -> str:
    """How old weights are: "1 update old"."""
    return f"{number(updates)} update{'s' * (updates != 1)} old"


def sampler_apart(update: Update, settings: Settings) -> str:
    """In what the sampler of an update is not the policy: "bfloat16, 4 updates old"; "" if nothing is known of it."""
    old = staleness(update)
    parts: list[str] = [settings.sampler_dtype] if settings.sampler_dtype != "same" and settings.samples_apart else []
    if old is not None and len(old) and old.any():
        parts.append(aged(float(old.mean())) + " on average" * bool(np.ptp(old)))
    if settings.logprobs_mode == "processed_logprobs" and (cut := _cut(settings)):
        parts.append(cut)
    return ", ".join(parts)


def _cut(settings: Settings) -> str:
    """What the sampler leaves out, such as "top_p 0.9"."""
    neutral = Settings()
    names = ("top_p", "top_k", "min_p", "repetition_penalty")
    cut = ((name, getattr(settings, name)) for name in names if getattr(settings, name) != getattr(neutral, name))
    return " and ".join(f"{name} {number(value)} counted" for name, value in cut)


def _mismatch_kl(update: Update) -> float | None:
    gap = sampler_difference(update)
    if gap is None:
        return None
    values = gap[np.isfinite(gap)].astype(np.float64)
    with np.errstate(over="ignore"):
        return float((np.expm1(values) - values).mean())


def gap_in_words(update: Update, settings: Settings) -> str:
    """One sentence on how far the sampler was from the policy, and what corrects for it; "" where they are one."""
    kl = update.once(_mismatch_kl)
    if not kl:
        return ""
    who = sampler_apart(update, settings)
    said = f"The mismatch KL of sampler{f' ({who})' if who else ''} and policy is {number(kl)} nats per token"
    factor = None if update.credited is None else update.credited.correction
    if factor is None:
        return f"{said}."
    known = factor[np.isfinite(factor)]
    out = int((known == 0).sum())
    return (
        f"{said}; the correction c averages {number(float(known.mean()))}"
        + f", and is 0 for {out:,} tokens" * (out > 0)
        + "."
    )
