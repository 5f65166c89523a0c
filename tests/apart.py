"""Made-up updates whose sampler is not the policy and which have a teacher, for what the screen shows of them."""

from __future__ import annotations

import msgspec
import numpy as np

from rlplay.trace.records import AnyRecord, CorrectionRule, Credited, Sampled, Stepped, spans
from rlplay.trace.update import Update
from tests.recorded import synthetic_update

RULE = CorrectionRule(level="token", outside="truncate", low=None, high=1.5)


def records_apart(number: int, teacher: bool = True, **shape: int) -> list[AnyRecord]:
    """`synthetic_update` with a sampler that is not the policy."""
    return set_apart(synthetic_update(number, **shape), teacher)


def set_apart(records: list[AnyRecord], teacher: bool = True) -> list[AnyRecord]:
    """An update's records with a sampler whose error grows along each answer, old weights, and a correction."""
    sampled, number = records[0], records[0].update
    assert isinstance(sampled, Sampled)
    rng = np.random.default_rng(number)
    place = np.concatenate([np.arange(size) for size in np.diff(sampled.offsets)])
    gap = (rng.normal(size=len(place)) * (0.05 + 0.02 * place)).astype(np.float32)
    ratio = np.exp(gap)
    lean = rng.normal(-0.5, 0.6, len(place)).astype(np.float32)
    for at, record in enumerate(records):
        match record:
            case Sampled():
                records[at] = msgspec.structs.replace(
                    record, sampling_logprobs=record.old_logprobs - gap,
                    sampling_top_logprobs=record.top_logprobs - gap[:, None],
                    versions=np.maximum(number - 1 - np.arange(len(record.group)) % 5, 0).astype(np.int32),
                )  # fmt: skip
            case Credited():
                taught = {
                    "teacher_logprobs": sampled.old_logprobs - lean,
                    "teacher_top_logprobs": sampled.top_logprobs - lean[:, None],
                }  # fmt: skip
                records[at] = msgspec.structs.replace(
                    record, correction=np.minimum(ratio, RULE.high).astype(np.float32), correction_rule=RULE,
                    **(taught if teacher else {}),
                )  # fmt: skip
            case Stepped() if teacher:
                index = spans(sampled.offsets, record.rows)
                records[at] = msgspec.structs.replace(record, distillation=np.expm1(-lean[index]) + lean[index])
            case _:
                pass
    return records


def update_apart(number: int = 6, **shape: int) -> Update:
    """The update of `records_apart`, whole."""
    update = Update(number)
    for record in records_apart(number, **shape):
        update.add(record)
    return update
