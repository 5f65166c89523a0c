"""Exports of an update whose sampler is not the policy, and which has a teacher."""

import numpy as np

from rlplay.export.completion_rows import rows
from rlplay.export.npz import arrays
from tests.apart import update_apart


def test_sampler_correction_and_teacher_are_exported() -> None:
    update = update_apart(6)
    sampled, credited = update.sampled, update.credited
    out = arrays(update, {})
    assert out["sampler_version"].tolist() == sampled.versions.tolist()
    size = int(sampled.offsets[1])
    for name, values in (
        ("sampling_logprobs", sampled.sampling_logprobs), ("correction", credited.correction),
        ("teacher_logprobs", credited.teacher_logprobs),
    ):  # fmt: skip
        np.testing.assert_array_equal(out[name][0][:size], values[:size])
    row = next(rows(update))
    assert row["sampler_version"] == sampled.versions[0]
    own = slice(row["prompt_len"], None)
    assert row["inference_logprobs"][own] == sampled.sampling_logprobs[:size].tolist()
    assert row["correction"][own] == credited.correction[:size].tolist()
    assert row["teacher_logprobs"][own] == credited.teacher_logprobs[:size].tolist()
    assert len(row["distillation"][own]) == size
