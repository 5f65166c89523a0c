"""The traces of prime-rl's file monitor as runs, in episodes that verifiers itself wrote."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import numpy as np
import pytest

from rlplay.foreign.copy import Copy
from rlplay.foreign.prime_stream import PrimeStream
from rlplay.foreign.verifiers_traces import Branch, branches
from rlplay.health.digest import digest
from rlplay.trace.records import Finished
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update
from tests.cli.command_line import called
from tests.foreign.grown import Row, aged, lines
from tests.foreign.test_files import updates_of
from tests.foreign.trace_numbers import ADVANTAGES, REWARDS, answer, entropies, inference, trainer

WRITTEN = Path(__file__).parent / "traces"
TRACES = "monitors/file/traces"


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (WRITTEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def of(step: int, records: list[Row]) -> list[Row]:
    """Those of the records that are of one step."""
    return [each for each in records if (each.get("trace_id") or each["traces"][0]["id"]).startswith(f"t{step}")]


def write(run: Path, name: str, records: list[Row], age: float = 100, chunk: int = 0) -> Path:
    path = run / TRACES / name / f"{chunk:05}.jsonl"
    lines(path, records, age)
    return path


def packed(path: Path) -> None:
    """Compress a chunk, in several frames, as the writer seals it."""
    pyarrow = pytest.importorskip("pyarrow")
    content = path.read_bytes()
    frames = [pyarrow.Codec("zstd").compress(content[i : i + 3000], asbytes=True) for i in range(0, len(content), 3000)]
    path.with_name(path.name + ".zst").write_bytes(b"".join(frames))
    aged(path.with_name(path.name + ".zst"), 100)
    path.unlink()


def spread(step: int, place: int, values: list[float], other: float) -> list[float]:
    """Values of the sampled tokens over the tokens of the answer."""
    first, _ = answer(step, place)
    return [*values[: len(first)], *[other] * 3, *values[len(first) :]]


def agrees(update: Update, step: int, late: bool = True) -> None:
    """Whether every number of the update is that of the traces; without `late` those of annotations are unknown."""
    places, nan = range(4), float("nan")

    def flat(values: list[list[float]], other: float = nan) -> np.ndarray:
        return np.array([x for p in places for x in spread(step, p, values[p], other)], dtype=np.float32)

    sampled = update.sampled
    turns = [answer(step, place) for place in places]
    assert sampled.token_ids.tolist() == [i for a, b in turns for i in (*a, 8, 7, 9, *b)]
    assert sampled.mask.tolist() == [i for a, b in turns for i in (*[1] * len(a), 0, 0, 0, *[1] * len(b))]
    assert sampled.prompt_ids.tolist() == [11, 12, 13, 9, 11, 12, 14, 9]
    assert sampled.group.tolist() == [0, 0, 1, 1]
    assert sampled.prompts == ["What is 0?", "What is 1?"]
    assert sampled.columns[0] == {"env": "sums"}
    assert sampled.truncated.tolist() == [0, 1, 0, 0]
    np.testing.assert_array_equal(sampled.old_logprobs, flat([inference(step, p) for p in places]))
    assert update.scored.rewards.tolist() == [2 * reward for reward in REWARDS]
    assert update.scored.parts["correct"].tolist() == list(REWARDS)
    if not late:
        assert sampled.sampling_logprobs is None
        assert not update.steps
        return
    np.testing.assert_array_equal(sampled.sampling_logprobs, sampled.old_logprobs)
    np.testing.assert_array_equal(sampled.entropy, flat([entropies(step, p) for p in places]))
    np.testing.assert_array_equal(update.steps[0].logprobs, flat([trainer(step, p) for p in places]))
    credit = flat([[ADVANTAGES[p]] * len(inference(step, p)) for p in places], 0.0)
    np.testing.assert_array_equal(update.credited.advantages, credit)
    gap = np.concatenate([np.subtract(trainer(step, p), inference(step, p)) for p in places])
    assert digest(update).mismatch == pytest.approx(np.mean(np.exp(gap) - gap - 1), rel=1e-3)
    assert update.finished.metrics["is_masked/mean"] == pytest.approx(1 / len(gap))
    first = int(np.flatnonzero(sampled.mask)[0])
    assert np.flatnonzero(update.steps[0].clip_state).tolist() == [first], "the masked token, which has fallen"
    assert update.steps[0].clip_state[first] == -1


def test_the_stream(tmp_path: Path) -> None:
    write(tmp_path / "run", "stream", rows("episodes"))
    for producer in ("orchestrator", "trainer"):
        write(tmp_path / "run", f"annotations/{producer}", rows(producer))
    (tmp_path / "run" / "configs").mkdir()
    (tmp_path / "run" / "configs" / "trainer.json").write_text('{"model": {"name": "Qwen/Qwen3-0.6B"}}')
    found = updates_of(tmp_path / "run")
    assert sorted(found) == [1, 2], "the trainer counts from 0"
    for step in (0, 1):
        agrees(found[step + 1], step)
    with RunReader(Copy(tmp_path / "run").path) as run:
        assert (run.started.source, run.started.model) == ("prime-rl", "Qwen/Qwen3-0.6B")


def test_chunks_that_are_compressed(tmp_path: Path) -> None:
    episodes = rows("episodes")
    packed(write(tmp_path / "run", "stream", episodes[:3]))
    packed(write(tmp_path / "run", "stream", episodes[3:], chunk=1))
    for producer in ("orchestrator", "trainer"):
        packed(write(tmp_path / "run", f"annotations/{producer}", rows(producer)))
    found = updates_of(tmp_path / "run")
    for step in (0, 1):
        agrees(found[step + 1], step)


def test_a_step_waits_until_it_was_trained(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    episodes, shipped, passed = (rows(name) for name in ("episodes", "orchestrator", "trainer"))
    stream = write(folder, "stream", of(0, episodes), age=0)
    copy = Copy(folder)
    with RunReader(copy.path) as run:
        assert run.updates() == []
        write(folder, "annotations/orchestrator", of(0, shipped), age=0)
        copy.pull()
        assert run.updates() == []
        write(folder, "annotations/trainer", of(0, passed)[:3], age=0)
        copy.pull()
        assert run.updates() == []
        write(folder, "annotations/trainer", of(0, passed), age=0)
        copy.pull()
        assert run.updates() == [1]
        agrees(run.load(1), 0)
        write(folder, "stream", episodes, age=0)
        packed(stream)  # sealed while it is read
        write(folder, "annotations/trainer", passed, age=0)  # before the orchestrator's
        copy.pull()
        assert run.updates() == [1]
        write(folder, "annotations/orchestrator", shipped, age=0)
        Copy(folder)  # another program, from the beginning of the streams
        assert run.updates() == [1, 2]
        agrees(run.load(2), 1)


def trace(name: str) -> Row:
    node = {"parent": None, "token_ids": [1, 2], "mask": [False, True], "message": {"role": "user", "content": "?"}}
    return {"id": name, "nodes": [node | {"logprobs": [-1.0]}], "rewards": {}}


def told(name: str, step: int) -> Row:
    return {"trace_id": name, "branches": [], "info": {"train": {"trained_at_step": step}}}


def test_going_on_repeats_no_step(tmp_path: Path) -> None:
    write(tmp_path, "stream", [trace(f"t{step}") for step in range(6)])
    write(tmp_path, "annotations/orchestrator", [told(f"t{step}", step) for step in range(6)])
    reader = PrimeStream(tmp_path)
    reader.resume({"step": 3, "first": 0})
    assert [record.update for record in reader.fresh() if isinstance(record, Finished)] == [5, 6]
    assert reader.place() == {"step": 5, "first": 0}


def test_traces_that_no_step_trains_are_forgotten(tmp_path: Path) -> None:
    steps, early = 150, 8  # a trace is trained so many steps after it has come
    arrived, shipped = [trace(f"t{step}") for step in range(early)], list[Row]()
    reader, late = PrimeStream(tmp_path), PrimeStream(tmp_path)
    updates, rest = list[int](), list[int]()
    for step in range(steps):
        arrived += [trace(f"t{step + early}"), trace(f"filtered {step}")]
        shipped.append(told(f"t{step}", step))
        write(tmp_path, "stream", arrived, age=0)
        write(tmp_path, "annotations/orchestrator", shipped, age=0)
        updates += [record.update for record in reader.fresh() if isinstance(record, Finished)]
        if step >= steps - early:  # most of it at once, the rest as it comes
            rest += [record.update for record in late.fresh() if isinstance(record, Finished)]
    assert updates == rest == [*range(1, steps)], "the last step may get more"
    held = [each for each in gc.get_objects() if isinstance(each, Branch) and each.trace["id"].startswith("filtered")]
    assert len(held) < 2 * steps - 50


def test_without_the_trainers_annotations(tmp_path: Path) -> None:
    write(tmp_path / "run", "stream", rows("episodes"))
    write(tmp_path / "run", "annotations/orchestrator", rows("orchestrator"))
    found = updates_of(tmp_path / "run")
    agrees(found[2], 1, late=False)
    assert digest(found[2]).mismatch is None
    assert np.isfinite(found[2].credited.advantages).all()


@pytest.mark.parametrize("of_episodes", [True, False])
def test_older_releases_leave_a_file_per_step(of_episodes: bool, tmp_path: Path) -> None:
    for step in (0, 1):
        records = of(step, rows("episodes"))
        if not of_episodes:
            info = {"group_id": "g", "env_name": "sums"}
            records = [each["traces"][0] | {"info": info} for each in records]
        for subset in ("all", "effective"):
            lines(tmp_path / "run" / "rollouts" / f"step_{step}" / "train" / subset / "traces.jsonl", records)
    found = updates_of(tmp_path / "run")
    assert sorted(found) == [1, 2]
    agrees(found[1], 0, late=False)


def test_two_branches_are_two_answers(tmp_path: Path) -> None:
    record = rows("episodes")[0]
    trace = record["traces"][0]
    trace["nodes"].append(
        trace["nodes"][1] | {"parent": 0, "token_ids": [9, 5], "mask": [False, True], "logprobs": [-1]}
    )
    lines(tmp_path / "run" / "rollouts" / "step_1" / "train" / "effective" / "traces.jsonl", [record])
    sampled = updates_of(tmp_path / "run")[1].sampled
    assert sampled.group.tolist() == [0, 0]
    assert sampled.token_ids[sampled.offsets[1] :].tolist() == [5]


@pytest.mark.parametrize(
    ("node", "changed", "said"),
    [
        (1, {"mask": [True]}, "mask has"),
        (1, {"logprobs": [-1.0]}, "logprobs has 1 values for 3 tokens"),
        (1, {"token_ids": ["x"] * 4}, "traces of prime-rl"),
        (0, {"message": 3}, "is not of prime-rl"),
    ],
)
def test_a_damaged_trace_is_one_line(
    node: int, changed: Row, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    episodes = rows("episodes")
    episodes[0]["traces"][0]["nodes"][node].update(changed)
    write(tmp_path / "run", "stream", episodes)
    write(tmp_path / "run", "annotations/orchestrator", rows("orchestrator"))
    status, _, error = called(capsys, "import", str(tmp_path / "run"))
    assert status == 2
    assert said in " ".join(error.split())
    assert "Traceback" not in error


def test_paths_that_repeat_what_they_share_have_an_end() -> None:
    def node(parent: int | None, tokens: int = 1) -> Row:
        return {"parent": parent, "token_ids": [1] * tokens, "mask": [True] * tokens}

    assert [len(each.ids) for each in branches({"nodes": [node(None, 9), node(0), node(0, 2)]})] == [10, 11]
    with pytest.raises(ValueError, match="more than 8388608 tokens"):
        branches({"nodes": [node(None, 20_000)] + [node(0)] * 500})
    with pytest.raises(ValueError, match="too long together"):
        branches({"nodes": [node(n - 1 if n else None) for n in range(400)] + [node(399)] * 400})
    with pytest.raises(ValueError, match="in a circle"):
        branches({"nodes": [node(1), node(0), node(0)]})
