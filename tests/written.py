"""Updates whose answers a test writes token by token; every other number in them is 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from rlplay.trace.records import AnyRecord, Sampled, Scored
from rlplay.trace.update import Update


def sampled_of(*answers: Sequence[str], prompts: Sequence[str] = ("Why?",), **fields: Any) -> Sampled:
    """These answers, each a list of tokens, in equal shares to each prompt; `fields` of the record replace its own."""
    texts = [text for answer in answers for text in answer]
    ids = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    count, asked = len(texts), len(prompts)
    zeros = np.zeros(count, dtype=np.float32)
    record = Sampled(
        update=1,
        done=True,
        position=max(map(len, answers)),
        temperature=1.0,
        prompts=list(prompts),
        prompt_ids=np.arange(asked, dtype=np.int32),
        prompt_offsets=np.arange(asked + 1, dtype=np.int64),
        prompt_texts=list(prompts),
        columns=[{} for _ in prompts],
        group=np.arange(len(answers), dtype=np.int32) * asked // len(answers),
        offsets=np.cumsum([0, *map(len, answers)]).astype(np.int64),
        token_ids=np.array([ids[text] for text in texts], dtype=np.int32),
        texts=texts,
        mask=np.ones(count, dtype=np.uint8),
        old_logprobs=zeros,
        entropy=zeros,
        top_ids=np.zeros((count, 1), dtype=np.int32),
        top_logprobs=np.zeros((count, 1), dtype=np.float32),
        truncated=np.zeros(len(answers), dtype=np.uint8),
        pieces={number: text for text, number in ids.items()},
    )
    return msgspec.structs.replace(record, **fields)


def scored_of(*rewards: float, update: int = 1, **fields: Any) -> Scored:
    """The rewards of the answers, each from one part, `correct`."""
    earned = np.array(rewards, dtype=np.float32)
    record = Scored(update=update, rewards=earned, parts={"correct": earned}, weights={"correct": 1.0}, gold={})
    return msgspec.structs.replace(record, **fields)


def update_with(*records: AnyRecord) -> Update:
    """The update that these records are of."""
    update = Update(records[0].update)
    for record in records:
        update.add(record)
    return update
