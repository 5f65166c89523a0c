"""The traces of `verifiers` that prime-rl's file monitor writes, as the answers of an update.

A trace is a tree of messages, each with the tokens that it adds (verifiers/v1/graph.py of 0.4.0): `mask` is true at
those that the policy sampled, and `logprobs`, `advantages`, … have a value for each of these. A path from the root to a
leaf is one answer, as prime-rl trains it. What is known only later, a `TraceUpdate` adds: it has arrays over all tokens
of a path (prime_rl/monitors/file/traces/update.py at 65a1858).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rlplay.foreign.answer_rows import Row, is_number, text_of
from rlplay.foreign.token_rows import TokenAnswer, tokened
from rlplay.record.format import Rollouts, Step
from rlplay.trace.records import Array

_CUT = {"max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "compaction_failed"}
"""What stops a trace without the policy ending it (`TRUNCATING_STOPS`)."""
_LARGEST, _MESSAGE = 2**23, 64
"""Tokens of all paths of a trace together, as each repeats what it shares with others, and how many a message counts
for, which takes as long to read."""
_COMPACT = ("logprobs", "advantages", "reference_logprobs", "trainer_logprobs", "entropies")
"""The numbers of a message's sampled tokens; the last two are the training pass's."""
_IN_ROLLOUTS = {
    "old_logprobs": "logprobs", "sampling_logprobs": "logprobs", "advantages": "advantages",
    "ref_logprobs": "reference_logprobs", "entropy": "entropies",
}  # fmt: skip
"""Numbers by their name in `Rollouts`. The ratio that prime-rl trains with is that to the sampler."""


def traces_of(record: Row) -> Iterator[Row]:
    """The traces that a record has of the policy: it is one, or an episode of several, with the group of these."""
    group, env = (record.get("group") or {}).get("id"), (record.get("env") or {}).get("name")
    for trace in [record] if "nodes" in record else record.get("traces") or []:
        if (trace.get("agent") or {}).get("trainable", True):  # else it is a judge's, for instance
            yield trace if trace is record else {**trace, "group": group, "env": env}


class Branch:
    """One path through a trace: its tokens, and the numbers that are known of them."""

    def __init__(self, trace: Row, path: Sequence[int]) -> None:
        self.trace, self._nodes = trace, [trace["nodes"][i] for i in path]
        self.ids = [int(i) for node in self._nodes for i in node.get("token_ids") or ()]
        self.mask = np.array([bool(x) for node in self._nodes for x in node.get("mask") or ()], dtype=bool)
        if len(self.mask) != len(self.ids):
            raise ValueError(f"mask has {len(self.mask)} values for {len(self.ids)} tokens")
        self.begin = int(self.mask.argmax()) if self.mask.any() else len(self.ids)
        self.numbers = {name: self._spread(name) for name in _COMPACT}

    def _spread(self, name: str) -> Array | None:
        """A number at each sampled token, NaN at others and at those of a message that has none."""
        found = np.full(len(self.ids), np.nan)
        place = 0
        for node in self._nodes:
            size = len(node.get("token_ids") or ())
            if values := node.get(name):
                sampled = np.flatnonzero(self.mask[place : place + size]) + place
                if len(values) != len(sampled):
                    raise ValueError(f"{name} has {len(values)} values for {len(sampled)} tokens")
                found[sampled] = values
            place += size
        return None if np.isnan(found).all() else found

    def add(self, name: str, values: Sequence[Any]) -> None:
        """Numbers over all tokens of the path, as far as they go."""
        found = np.array([np.nan if x is None else float(x) for x in values[: len(self.ids)]])
        whole = np.full(len(self.ids), np.nan)
        whole[: len(found)] = np.where(self.mask[: len(found)], found, np.nan)
        self.numbers[name] = whole

    def answer(self, known: Sequence[str]) -> TokenAnswer:
        """The answer, with these of its numbers."""
        begin, info, env = self.begin, self.trace.get("info") or {}, self.trace.get("env")
        arrays: dict[str, Any] = {name: self._at(theirs) for name, theirs in _IN_ROLLOUTS.items() if name in known}
        if "advantages" in arrays:
            arrays["advantages"] = np.where(self.mask[begin:], np.nan_to_num(arrays["advantages"]), 0.0)
        asked, env = tuple(self.ids[:begin]), env or info.get("env_name")
        return TokenAnswer(
            (self.trace.get("group") or info.get("group_id"), asked), self._question(), asked, self.ids[begin:],
            arrays=arrays | {"mask": self.mask[begin:]}, truncated=_cut(self.trace),
            column={"env": env} if isinstance(env, str) else {},
        )  # fmt: skip

    @property
    def of_sampler(self) -> Array:
        """The sampler's log-probabilities of all tokens; NaN where there is none."""
        found = self.numbers["logprobs"]
        return np.full(len(self.ids), np.nan) if found is None else found

    def _question(self) -> str:
        """The last thing that a user said before the policy answered."""
        before = itertools.takewhile(lambda node: not any(node.get("mask") or ()), self._nodes)
        said = [node["message"] for node in before if node["message"].get("role") == "user"]
        return text_of(said[-1:]) if said else ""

    def _at(self, name: str) -> Array:
        values = self.numbers.get(name)
        return np.full(len(self.ids) - self.begin, np.nan) if values is None else values[self.begin :]


def branches(trace: Row) -> list[Branch]:
    """The paths of a trace, in the order of their leaves; the same numbers as a `TraceUpdate` gives them.

    Raises ValueError if they are too long together, or one has no end.
    """
    nodes = trace.get("nodes") or []
    inner = {node.get("parent") for node in nodes}
    sizes = [_MESSAGE + len(node.get("token_ids") or ()) for node in nodes]
    paths, left = list[list[int]](), _LARGEST
    for leaf in (i for i in range(len(nodes)) if i not in inner):
        path, place = list[int](), leaf
        while isinstance(place, int) and 0 <= place < len(nodes):
            path.append(place)
            left -= sizes[place]
            if len(path) > len(nodes):
                raise ValueError("messages of a trace follow each other in a circle")
            if left < 0:
                raise ValueError(f"the paths of a trace are too long together: more than {_LARGEST} tokens")
            place = nodes[place].get("parent")
        paths.append(path[::-1])
    return [Branch(trace, path) for path in paths]


def sampled(update: int, found: Sequence[Branch]) -> Rollouts:
    """The answers."""
    known = [
        name for name, theirs in _IN_ROLLOUTS.items() if any(each.numbers.get(theirs) is not None for each in found)
    ]
    if not any(each.numbers.get("trainer_logprobs") is not None for each in found):
        known = [name for name in known if name != "sampling_logprobs"]  # there is nothing to hold the sampler against
    return tokened(update, [each.answer(known) for each in found], *_rewards([each.trace for each in found]))


def trained(update: int, found: Sequence[Branch]) -> Step | None:
    """What the training pass computed; None if it is not known of all."""
    each = [branch.numbers.get("trainer_logprobs") for branch in found]
    known = [values[branch.begin :] for values, branch in zip(each, found, strict=True) if values is not None]
    if len(known) < len(found):
        return None
    masks = [values[branch.begin :] for branch in found if (values := branch.numbers.get("is_masked")) is not None]
    logprobs, masked = np.concatenate(known), np.concatenate(masks or [np.zeros(0)])
    said = masked[~np.isnan(masked)]
    clips = None
    if len(masked) == len(logprobs) and len(said):  # it is clipped on the side to which it has moved
        sampler = np.concatenate([branch.of_sampler[branch.begin :] for branch in found])
        clips = np.where(masked == 1, np.where(logprobs > sampler, 1, -1), 0).astype(np.int8)
    return Step(
        update=update, step=0, steps=1, rows=np.arange(len(found), dtype=np.int32),
        logprobs=logprobs.astype(np.float32), clip_state=clips,
        metrics={"is_masked/mean": float(said.mean())} if len(said) else {},
    )  # fmt: skip


def _of_records(records: Sequence[Row]) -> list[Branch]:
    found = [branch for record in records for trace in traces_of(record) for branch in branches(trace)]
    return [each for each in found if each.mask.any()]


def rollouts(update: int, records: Sequence[Row]) -> Rollouts:
    """The answers in a file of one step."""
    return sampled(update, _of_records(records))


def step(update: int, records: Sequence[Row]) -> Step | None:
    """What the training pass computed of them."""
    return trained(update, _of_records(records))


def _cut(trace: Row) -> bool:
    if trace.get("stop_condition") in _CUT:
        return True
    calls = [call for call in trace.get("calls") or [] if call.get("error") is None]
    return bool(calls) and calls[-1].get("finish_reason") == "length"


def _rewards(traces: Sequence[Row]) -> tuple[dict[str, list[Any]], dict[str, float]]:
    """The rewards with their weights; where traces weigh one differently, their total. Metrics are tracked."""
    each = [{name: r for name, r in (t.get("rewards") or {}).items() if isinstance(r, dict)} for t in traces]
    weights = {(name, r.get("weight", 1.0)) for parts in each for name, r in parts.items()}
    names = list(dict.fromkeys(name for parts in each for name in parts))
    if len(weights) > len(names):
        total = [sum(r["score"] * r.get("weight", 1.0) for r in parts.values()) if parts else None for parts in each]
        return {"reward": total}, {"reward": 1.0}
    found: dict[str, list[Any]] = {name: [parts.get(name, {}).get("score") for parts in each] for name in names}
    metrics = [t.get("metrics") or {} for t in traces]
    tracked = [
        name for name in metrics[0]
        if name not in found and all(name in m and is_number(m[name]) for m in metrics)
    ]  # fmt: skip
    found |= {name: [m[name] for m in metrics] for name in tracked}
    return found, {name: float(weight) for name, weight in weights} | dict.fromkeys(tracked, 0.0)
