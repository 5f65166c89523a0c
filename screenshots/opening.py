"""Records the story of the opening from a real run: `python -m screenshots.opening`, half a minute.

The flagship scenario with its own seed and settings, on a CPU; only held-out problems are asked after every update.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from rlplay.engine.driver import Driver
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.trace.questions import Continue, Continued, Prefix
from rlplay.trace.records import AnyRecord, Evaluated, Sampled, Scored
from rlplay.ui.opening.story import PATH, Answer, Story

SCENARIO = "learn-to-think"
UPDATES = 15


def record(folder: Path, updates: int = UPDATES) -> Story:
    """Train for as many `updates`, with the run file in `folder`."""
    scenario = msgspec.structs.replace(load(SCENARIO), eval_every=1)
    records: list[AnyRecord] = []
    driver = Driver(Job(scenario, str(folder / "opening.rlplay"), "cpu"), records.append)
    driver.load(lambda _what, _share: None)
    try:
        driver.advance("update", updates, lambda: False)
        sampled = next(each for each in records if isinstance(each, Sampled) and each.done)
        scored = next(each for each in records if isinstance(each, Scored))
        evaluated = [each for each in records if isinstance(each, Evaluated)]
        last = driver.answers(Continue(Prefix(sampled.prompts[0]), greedy=True), lambda: False)
        tail = next(each for each in last if isinstance(each, Continued)).tails[0]
    finally:
        driver.close()
    first = "".join(sampled.texts[: sampled.offsets[1]])
    return Story(
        scenario=SCENARIO,
        title=scenario.question,
        seed=scenario.seed,
        settings=dict(scenario.settings),
        question=sampled.prompts[0],
        before=Answer(_plain(first), bool(scored.rewards[0] == 1)),
        after=Answer(_plain("".join(tail.texts)), tail.reward == 1),
        held_out=len(evaluated[0].prompts),
        shares=[float(each.rewards.mean()) for each in evaluated],
    )


def _plain(text: str) -> str:
    return text.removesuffix("<|end|>")


def main() -> None:
    """Record, and write the file."""
    with tempfile.TemporaryDirectory() as folder:
        story = record(Path(folder))
    PATH.write_bytes(msgspec.json.format(msgspec.json.encode(story), indent=1) + b"\n")
    print(PATH)


if __name__ == "__main__":
    main()
