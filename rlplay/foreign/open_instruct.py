"""Reads the rollouts that open-instruct writes with `--save_traces`, into `--rollouts_save_path`.

`RUN_rollouts_NNNNNN.jsonl` has a line per answer, 10,000 to a file, each with the step that trained it: prompt_tokens,
response_tokens, reward, advantage, finish_reason, and the sampler's logprobs (`RolloutRecord` in
open_instruct/rl_utils.py). `RUN_metadata.jsonl` names the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlplay.algorithms.settings import Settings
from rlplay.foreign.answer_rows import Row
from rlplay.foreign.files import HalfWrittenError, age, made_of
from rlplay.foreign.foreign_run import ForeignRunError, beginning
from rlplay.foreign.json_lines import lines_from
from rlplay.foreign.token_rows import TokenAnswer, tokened
from rlplay.foreign.token_texts import TokenTexts
from rlplay.record.format import Rollouts
from rlplay.trace.records import AnyRecord, Started

_SOURCE = "open-instruct"
_NAME = re.compile(r"^(.+)(?<!_filtered)_rollouts_\d{6}\.jsonl$")
SETTLED = 60.0
"""Seconds without a new line after which the newest step is taken to be complete."""


class OpenInstruct:
    """The rollouts in the folder `path`; step N is update N."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._done = 0
        self._texts = TokenTexts(path, self._model(sorted(set(_files(path).values()))))
        self._read: dict[Path, int] = {}
        self._waiting: dict[int, list[Row]] = {}

    @staticmethod
    def is_at(folder: Path) -> bool:
        """Whether a folder has such files."""
        return bool(_files(folder))

    def started(self) -> Started:
        """What the run's metadata say. Raises ForeignRunError if the folder holds several runs."""
        names = sorted(set(_files(self.path).values()))
        if len(names) > 1:
            raise ForeignRunError(f"{self.path} holds several runs ({', '.join(names)[:80]}); give each its own folder")
        return beginning(
            _SOURCE, title=f"{_SOURCE} · {names[0] if names else self.path.name}", model=self._model(names)
        )

    def place(self) -> dict[str, Any]:
        """The last step read."""
        return {"step": self._done}

    def resume(self, place: Mapping[str, Any]) -> None:
        """Go on after this step."""
        self._done, self._read, self._waiting = place.get("step", 0), {}, {}

    def fresh(self) -> list[AnyRecord]:
        """The steps that are complete: there are later ones, or nothing was written for a while."""
        paths = list(_files(self.path))
        try:
            for path in paths:
                for row, end in lines_from(path, self._read.get(path, 0)):
                    self._read[path] = end
                    if row["step"] > self._done:
                        self._waiting.setdefault(row["step"], []).append(row)
            quiet = bool(paths) and min(map(age, paths)) > SETTLED
            found: list[AnyRecord] = []
            for step in sorted(self._waiting):
                if step < max(self._waiting) or quiet:
                    rows = self._waiting.pop(step)
                    found += made_of(step, step, rollouts(step, rows), None, Settings(algorithm=""), self._texts)
                    self._done = step
        except HalfWrittenError:
            return []
        except (LookupError, TypeError, ValueError, OSError, AttributeError, OverflowError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ForeignRunError(f"{self.path} is not of {_SOURCE}: {what}") from None
        return found

    def _model(self, names: Sequence[str]) -> str:
        try:
            first = (self.path / f"{names[0]}_metadata.jsonl").read_text(encoding="utf-8").splitlines()[0]
            return str(json.loads(first)["model_name"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return ""


def _files(folder: Path) -> dict[Path, str]:
    """The files with answers that were trained, each with the name of its run."""
    named = {path: _NAME.match(path.name) for path in sorted(folder.glob("*_rollouts_*.jsonl"))}
    return {path: found[1] for path, found in named.items() if found}


def rollouts(update: int, found: Sequence[Row]) -> Rollouts:
    """Rows of one step. The files do not say which tokens a tool wrote, so all count as the policy's."""
    answers = []
    for row in found:
        prompt, ids, logprobs = row["prompt_tokens"], row["response_tokens"], row.get("logprobs")
        answers.append(
            TokenAnswer(
                (row["prompt_idx"], tuple(prompt)), "", prompt, ids, truncated=row["finish_reason"] != "stop",
                arrays={"advantages": [row["advantage"]] * len(ids), "old_logprobs": logprobs},
                column={"dataset": str(row["dataset"])} if row.get("dataset") else {},
            )
        )  # fmt: skip
    return tokened(update, answers, {"reward": [row["reward"] for row in found]})
