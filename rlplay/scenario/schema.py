"""The content of a scenario file: the task, the settings, and the script that plays it."""

from __future__ import annotations

from typing import Any

import msgspec

from rlplay.trace.kinds import SomeSettings


class Stage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One part of a pipeline: a number of updates under the scenario's settings, overridden by the stage's own.

    Each stage begins with the policy of the one before, which also becomes its reference; with `restart` it begins with
    the model as the run began, and the policy of the one before becomes its teacher. A stage may have a `dataset` and
    rewards in place of the scenario's.
    """

    name: str
    updates: int
    settings: SomeSettings = {}
    dataset: str | None = None
    dataset_config: str | None = None
    dataset_train_split: str | None = None
    columns: dict[str, str] = {}
    reward: list[str] = []
    restart: bool = False


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One scenario. `task` names a bundled task, `world` draws one, or `dataset` and `reward` point at the user's own.

    `script` is a list of mappings with one key each, a verb of `verbs.py`, as in `- update: 3`.
    """

    name: str
    title: str
    question: str
    summary: str = ""
    model: str = "pocket"  # of a world: "table" or "mlp"
    dtype: str = "auto"  # of the model's weights: float32, bfloat16, or bfloat16 on a GPU that computes in it
    tf32: bool = False  # on a GPU, factors of float32 products have 10 bits after the point; the name is TRL's
    full_determinism: bool = False  # on a GPU, only kernels that add in one order; the name is TRL's
    use_peft: bool = False  # LoRA: adapters are trained beside frozen weights; the other names are TRL's, too
    lora_r: int = 16
    lora_alpha: int = 32
    lora_target_modules: list[str] = []  # names of layers, or all-linear; empty: peft's choice for the model
    teacher: str | None = None  # of the policy where settings distil: as `model`, or RUN@UPDATE
    teacher_prompt_template: str = "{prompt}\n\n{privileged_context}"  # what it reads with a teacher_context; TRL's
    privileged_context: str = "privileged_context"  # the dataset's column with it where that is its teacher_context
    task: str | None = None
    world: dict[str, Any] | None = None  # as `worlds/world.py` reads it
    dataset: str | None = None  # a file, a folder, or a name on Hugging Face; the latter two take
    dataset_config: str | None = None
    dataset_train_split: str | None = None  # None: train
    columns: dict[str, str] = {}  # of the dataset: prompt, answer, completion, … to its own names for them
    system_prompt: str | None = None
    chat_template_kwargs: dict[str, Any] = {}  # passed on to the model's chat template
    environment: str | None = None  # FILE.py:FUNCTION or MODULE:FUNCTION, as `tasks/task.py` describes it
    tools: list[str] = []  # the same forms: what the model may call, as TRL has it
    environment_factory: str | None = None  # a class whose methods the model may call, as TRL has it
    reward: list[str] = []  # FILE.py:FUNCTION or MODULE:FUNCTION each
    prompts: list[str] | None = None  # every update trains on these alone, in this order
    settings: SomeSettings = {}
    stages: list[Stage] = []  # `max_updates` is then the sum of theirs
    seed: int = 0
    max_updates: int = 50
    eval_every: int = 5  # updates between held-out evaluations; 0: never
    eval_prompts: int = 64
    eval_generations: int = 1  # answers to each held-out prompt; more if prompts are few
    script: list[dict[str, Any]] = []
    quiz: list[dict[str, Any]] = []  # questions after the script, as its `ask` takes them
    card: dict[str, Any] = {}  # what to take away at the end: takeaway, formula, sources
    shows: list[int] = []  # the concepts of the course that it teaches, by number
    panels: list[str] = []  # the curves and views to begin with, the most important first; others follow
    stage: str = ""  # what the screen gives its room to at first, one of `verbs.STAGES`; empty: as the run suggests
    knobs: list[str] = []  # the settings that the knobs panel shows; empty: all
    made_before: int = 0  # updates that another trainer has made; of their course there are no weights
    origin: str = ""  # its name on the command line, filled in by `load`: a bundled name or an absolute path


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run to do: a scenario with all command-line changes, the run file, and the device."""

    scenario: Scenario
    run: str  # path of the run file
    device: str = "auto"
    threads: int | None = None  # CPU threads; None: all cores but one, so that the screen stays responsive
    resume: bool = False  # continue from the run file's last snapshot
