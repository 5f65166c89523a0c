"""The examination: `python -m tests.sick.exam FOLDER SEED…` trains every case that FOLDER lacks, asks `rlplay health`
as a user would, and prints what it says of each, beside what it should have said."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from rlplay.foreign.copy import run_file
from tests.sick.case import Case, Numbers
from tests.sick.questions import ALONE, QUESTIONS
from tests.sick.runs import Sample
from tests.sick.table import judge
from tests.sick.trial import TRIAL
from tests.sick.well import WELL

RIGHT, ELSE, SILENT, ALARM, VOID = "right", "else", "silent", "alarm", "void"
"""The cause comes first; something else does; nothing is said; a well run is called ill; the sabotage had no effect."""


@dataclass(frozen=True)
class Answer:
    """What health says of a case."""

    case: Case
    mark: str
    proof: Numbers
    first: dict[str, Any] = field(default_factory=dict)
    """The first finding; empty if there is none."""
    others: tuple[str, ...] = ()
    reassures: tuple[str, ...] = ()
    """Ticks that are wrong for this case."""
    alarms: tuple[str, ...] = ()
    """The first findings at any update of a well run."""


def asked(run: Path, *options: str) -> str:
    """What the command prints of a run."""
    command = [sys.executable, "-m", "rlplay", "health", str(run), *options]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if answer.returncode > 1:
        raise ValueError(answer.stderr)
    return answer.stdout


def examined(case: Case, folder: Path, seed: int) -> Answer:
    """Make the run of a case, ask, and mark the answer."""
    run, proof = case.made(folder, seed)
    said = json.loads(asked(run, "--json"))
    found = said["findings"]
    first = found[0] if found else {}
    ticks = tuple(f"{each['title']}: {each['text']}" for each in said["passed"] if each["title"] in case.ticks)
    known = (proof, first, tuple(each["name"] for each in found[1:]), ticks)
    if not case.there(proof):
        return Answer(case, VOID, *known)
    if not case.trouble:
        alarms = tuple(judge(Sample(case.name), run_file(run)).alarms)
        return Answer(case, ALARM if alarms or found else RIGHT, *known, alarms)
    return Answer(case, _mark(case, first, asked(run) if case.normal else ""), *known)


def _mark(case: Case, first: dict[str, Any], text: str) -> str:
    if case.normal:
        return ALARM if first else RIGHT if _says(case.words, text) else SILENT
    if not first:
        return SILENT
    whole = " ".join(str(first[part]) for part in ("title", "evidence", "cause"))
    return RIGHT if (not case.names or first["name"] in case.names) and _says(case.words, whole) else ELSE


def _says(words: str, text: str) -> bool:
    return re.search(words, " ".join(text.split()), re.IGNORECASE) is not None


def sat(folder: Path, seed: int) -> Iterator[Answer]:
    """All cases with one seed; runs that `folder` holds already are not made again."""
    with mock.patch.dict(os.environ, {"RLPLAY_HOME": str(folder / "home")}):
        for case in (*QUESTIONS, *TRIAL, *WELL, *ALONE):
            yield examined(case, folder, seed)


def rows(answer: Answer) -> list[str]:
    """An answer in a few lines: what was wrong, what was said, and what was ticked wrongly."""
    proof = "  ".join(f"{name} {value:.3g}" for name, value in answer.proof.items())
    found = [f"{answer.mark:<6} {answer.case.name}: {answer.case.trouble or 'nothing'}", f"       proof  {proof}"]
    if answer.first:
        said = answer.first
        found.append(f"       said   [{said['name']}] {said['title']}. {said['evidence']}")
        found += [f"       {part} {said[part]}" for part in ("cause", "change")]
    found += [f"       also   {', '.join(answer.others)}"] if answer.others else []
    found += [f"       WRONG ✓ {tick}" for tick in answer.reassures]
    found += [f"       at any update: {', '.join(sorted(set(answer.alarms)))}"] if answer.alarms else []
    return found


def counts(answers: list[Answer]) -> dict[str, int]:
    """How many of each part are right, and what is wrong."""

    def right(cases: tuple[Case, ...]) -> int:
        return sum(answer.mark == RIGHT for answer in answers if answer.case in cases)

    wrong = sum(len(answer.reassures) for answer in answers)
    return {"questions": right(QUESTIONS), "trial": right(TRIAL), "metrics alone": right(ALONE),
            "alarms": len(WELL) - right(WELL), "wrong ticks": wrong}  # fmt: skip


def main() -> None:
    """Examine and print."""
    import torch

    torch.set_num_threads(1)
    folder, seeds = Path(sys.argv[1]), [int(seed) for seed in sys.argv[2:]]
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        answers = []
        for answer in sat(folder, seed):
            answers.append(answer)
            print("\n".join(rows(answer)), flush=True)
        found = counts(answers)
        print(f"\nseed {seed}: {found['questions']} of {len(QUESTIONS)} questions, {found['trial']} of {len(TRIAL)} of "
              f"the trial, {found['metrics alone']} of {len(ALONE)} with metrics alone; {found['wrong ticks']} wrong "
              f"ticks; {found['alarms']} of {len(WELL)} healthy runs alarmed\n")  # fmt: skip


if __name__ == "__main__":
    main()
