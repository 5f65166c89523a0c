"""Writes tests/foreign/traces with verifiers 0.4.0 itself: `python -m tests.foreign.write_traces`.

It needs `pip install verifiers==0.4.0`. The layout of the folder is that of prime-rl's file monitor, which is on no
index; its updates of traces are made here as `make_update` does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.foreign.trace_numbers import ADVANTAGES, REWARDS, answer, entropies, inference, trainer

FOLDER = Path(__file__).parent / "traces"


def episode(step: int, place: int) -> Any:
    """An episode of one trace: a question, an answer, a tool's message, a second answer."""
    from verifiers.v1.episode import EnvInfo, Episode, GroupInfo
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.trace import AgentInfo, Reward, Trace, TraceTask
    from verifiers.v1.types import AssistantMessage, ToolMessage, UserMessage

    first, second = answer(step, place)
    said = inference(step, place)
    nodes = [
        MessageNode(message=UserMessage(content=f"What is {place // 2}?"), token_ids=[11, 12, 13 + place // 2],
                    mask=[False] * 3, timestamp=1.0),
        MessageNode(parent=0, message=AssistantMessage(content="I look."), sampled=True, token_ids=[9, *first],
                    mask=[False, *[True] * len(first)], logprobs=said[: len(first)], timestamp=2.0),
        MessageNode(parent=1, message=ToolMessage(content="4", tool_call_id="a"), token_ids=[8, 7], mask=[False] * 2,
                    timestamp=3.0),
        MessageNode(parent=2, message=AssistantMessage(content="So 4."), sampled=True, token_ids=[9, *second],
                    mask=[False, *[True] * len(second)], logprobs=said[len(first) :], timestamp=4.0),
    ]  # fmt: skip
    task = TraceTask(type="Sums", data={"idx": place})
    trace = Trace(
        id=f"t{step}{place}", task=task, agent=AgentInfo.model_construct(), nodes=nodes, ok=True,
        stop_condition="max_turns" if place == 1 else "agent_completed", is_completed=True,
        rewards={"correct": Reward(score=REWARDS[place], weight=2.0)}, metrics={"turns": 2.0},
        info={"kind": "train" if step < 9 else "eval"},
    )  # fmt: skip
    return Episode(id=f"e{step}{place}", task=task, env=EnvInfo(id="sums", name="sums"), traces=[trace], ok=True,
                   group=GroupInfo(id=f"g{step}{place // 2}"))  # fmt: skip


def whole(step: int, place: int, values: list[Any]) -> list[Any]:
    """Values of the sampled tokens over all tokens of the trace."""
    first, _ = answer(step, place)
    return [None] * 4 + values[: len(first)] + [None] * 3 + values[len(first) :]


def updates(step: int, place: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the orchestrator and the trainer say of a trace later."""
    count = len(inference(step, place))
    credit = whole(step, place, [ADVANTAGES[place]] * count)
    shipped = {
        "version": 1, "trace_id": f"t{step}{place}", "branches": [{"index": 0, "advantages": credit}],
        "info": {"train": {"effective": True, "trained_at_step": step}, "advantage": ADVANTAGES[place]},
    }  # fmt: skip
    streams = {"trainer_logprobs": trainer(step, place), "entropies": entropies(step, place),
               "is_masked": [place == 0, *[False] * (count - 1)]}  # fmt: skip
    passed = {name: whole(step, place, values) for name, values in streams.items()}
    return shipped, {"version": 1, "trace_id": f"t{step}{place}", "info": {}, "branches": [{"index": 0, **passed}]}


def main() -> None:
    """Write the episodes, one to a line, and the updates."""
    FOLDER.mkdir(exist_ok=True)
    lines = [json.dumps(episode(step, place).to_record()) for step in (0, 1) for place in range(4)]
    (FOLDER / "episodes.jsonl").write_text("\n".join([*lines, json.dumps(episode(9, 0).to_record())]) + "\n")
    both = [updates(step, place) for step in (0, 1) for place in range(4)]
    for number, producer in enumerate(("orchestrator", "trainer")):
        (FOLDER / f"{producer}.jsonl").write_text("".join(json.dumps(each[number]) + "\n" for each in both))


if __name__ == "__main__":
    main()
