"""What rlplay's own settings say of a sampler that disagrees with training: the cause by name, and what cures it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rlplay.health.finding import Evidence, Finding
from rlplay.trace.numbers import number

WEIGHTS = ("sampler_lag", "weight_sync_steps", "old_logprobs_of", "surrogate")
PRECISION = ("sampler_dtype", "importance_sampling_mode")
CUT = ("top_p", "top_k", "min_p", "logprobs_mode")
_LIMIT = "or end each token's push where it has moved far from the sampler: old_logprobs_of sampler, surrogate dppo_tv."
_CORRECT = "or correct each token by its ratio to the sampler, within bounds: importance_sampling_mode token_truncate."


def own(run: Evidence) -> bool:
    """Whether rlplay itself sampled, by settings that let the sampler have other weights than the policy."""
    return not run.source and run.settings.samples_apart


def by_own_settings(run: Evidence, found: Finding | None) -> Finding | None:
    """A finding about the sampler with the settings that are its cause; as it is where there are none."""
    if found is None or not own(run):
        return found
    s, age = run.settings, None if run.newest is None else run.newest.age
    if s.sampler_lag or s.weight_sync_steps != 1:
        otherwise = _LIMIT if _unguarded(run) else _tighter(run)
        return replace(
            found,
            title="The sampler's weights are old"
            if age is None
            else f"The sampler's weights are {number(age)} update{'s' * (age != 1)} old",
            cause=f"{_weights(run)} So the policy learns from answers that it would no longer give, the more so the "
            "farther a step moves it.",
            change=f"Set sampler_lag 0 and weight_sync_steps 1, take smaller steps, {otherwise}",
            settings=WEIGHTS if _unguarded(run) else WEIGHTS[:2],
        )
    return replace(
        found,
        title=f"The sampler's {s.sampler_dtype} weights are not the policy's",
        cause=f"sampler_dtype is {s.sampler_dtype}: rounding gives tokens other probabilities than training computes.",
        change=f"Set sampler_dtype same or a finer one, {_CORRECT if _unguarded(run) else _tighter(run)}",
        settings=PRECISION if _unguarded(run) else PRECISION[:-1],
    )


def _unguarded(run: Evidence) -> bool:
    """Whether the loss takes no account of the sampler, neither by a correction nor by a ratio that starts there."""
    return run.settings.importance_sampling_mode == "none" and run.settings.old_logprobs_of == "trainer"


def _tighter(run: Evidence) -> str:
    mode = run.settings.importance_sampling_mode
    return "or a smaller epsilon." if mode == "none" else f"or bound the correction more tightly ({mode} is on)."


def _weights(run: Evidence) -> str:
    s = run.settings
    if not s.weight_sync_steps:
        return "weight_sync_steps is 0: the sampler never gets new weights, as with an adapter that does not arrive."
    parts = [f"sampler_lag is {s.sampler_lag}"] * bool(s.sampler_lag)
    parts += [f"weight_sync_steps is {s.weight_sync_steps}"] * (s.weight_sync_steps != 1)
    return f"{' and '.join(parts)}: answers come from the weights of some updates ago."


def own_cut(run: Evidence) -> list[str]:
    """The settings that keep tokens from the sampler, each with its value."""
    s = run.settings
    kept = {"top_p": s.top_p < 1, "top_k": s.top_k > 0, "min_p": s.min_p > 0}
    return [f"{name} {number(getattr(s, name))}" for name, cut in kept.items() if cut and run.stated(name)]


def cures(run: Evidence) -> Iterator[tuple[str, dict[str, object]]]:
    """What to try against the own sampler's distance, with a label each; the likeliest first."""
    if not own(run):
        return
    s = run.settings
    yield "a sampler with the policy's weights", {"sampler_dtype": "same", "sampler_lag": 0, "weight_sync_steps": 1}
    # Against older weights the advice is DPPO, which bounds what the distance does and not the distance: no trial by
    # distance could judge it.
    if _unguarded(run) and not s.sampler_lag and s.weight_sync_steps == 1:
        yield "corrects each token for the sampler", {"importance_sampling_mode": "token_truncate"}
