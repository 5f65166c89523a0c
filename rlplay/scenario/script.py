"""Scenario scripts: a list of steps, each a mapping with one verb as its key.

```yaml
script:
  - say: Every answer is a token sequence.      # a line of the lesson
  - ask:                                        # ask for a prediction
      question: What will happen to the length?
      choices: [shorter, the same, longer]
      answer: longer                            # one of the choices; revealed after the claims that follow
      because: Working the steps out takes tokens, and it earns more.
  - you: {say: "Press `u` for one update.", update: 1}   # waits until the learner has done it, with any verb
  - exercise:                                   # waits until the claims hold
      say: Find a γ that makes the first return 2.75.
      expect: [{text: The first return, lens: returns, equals: 2.75}]
      hint: 1 + 2γ + 3γ² = 2.75
      solution: [{set: {gamma: 0.5}}, {update: 1}]       # played without a screen, hands-free, and on request
  - write: reinforce                            # a writing exercise; or {say: Write the loss., exercise: reinforce}
  - watch: {metric: reward, above: 0.5, say: Half of it.}   # words for a long run, spoken when the claim holds
  - token: 3                                    # also phase, step, update, run; 1 without a number
  - set: {beta: 0.1, temperature: 0.8}
  - prefer: [a, b, skip]                        # labels for the next pairs, with labeller=user, after `phase: 1`
  - withhold: [3, 4]                            # takes the credit of tokens of the next update away
  - undo:                                       # rewinds by one update
  - rewind: 0                                   # to the state after this update
  - probe: {prompt: "What is 2+2?", then: value}   # or samples, greedy, course; or completion and token; force: "2"
  - lens: credit                                # the screen: lens, focus: {completion: 0, token: 2}, older, live …
  - stage: map                                  # what the screen gives its room to
  - maths: true                                 # the formulas of the selected token; false: words and bars
  - expect: {text: It learns, metric: reward, above: 0.8}   # grammar in claim.py
```

A script may use every verb of `verbs.py` except `tour`, which plays a script. A run without a screen skips the verbs of
the screen. `parse` turns a script into frozen steps, so that its player can match on types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import msgspec

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import check
from rlplay.exercises import exercise_called
from rlplay.scenario.claim import Bounds, Expect, ShareValue, parse_expect
from rlplay.scenario.screen_arguments import check_focus, check_mapping
from rlplay.spelling import did_you_mean
from rlplay.trace.find import parse as parse_find
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import METRICS, describe, pair_of
from rlplay.trace.records import Choice
from rlplay.trace.text import brief, quote
from rlplay.verbs import MAP_VIEWS, PANELS, SLIDERS, STAGES, VERBS, WEIGHT_VIEWS

_MOST_CHOICES = 9
Pace = Literal["token", "phase", "step", "update"]
Until = Pace | Literal["forever"]
_PACES: dict[str, Pace] = {"token": "token", "phase": "phase", "step": "step", "update": "update", "run": "update"}


class Say(msgspec.Struct, frozen=True):
    """Tell the user something."""

    text: str


Way = Literal["falls", "stays", "rises"]
"""How a curve goes on."""


class Ask(msgspec.Struct, frozen=True):
    """Ask for a prediction; reveal `choices[answer]` and `because` after the next expectations, or at once.

    If the question is about a `curve`, a metric, `ways` says for each choice how the curve would go on.
    """

    question: str
    choices: list[str]
    answer: int
    because: str
    curve: str = ""
    ways: list[Way] = []


class Train(msgspec.Struct, frozen=True):
    """Advance by `count` tokens, phases, optimizer steps or updates."""

    until: Pace
    count: int


class Change(msgspec.Struct, frozen=True):
    """Change settings of the run."""

    settings: SomeSettings


class PreferStep(msgspec.Struct, frozen=True):
    """Label the next pairs that wait for a label, one choice each."""

    choices: list[Choice]


class WithholdStep(msgspec.Struct, frozen=True):
    """Take the credit of these tokens of the next update away; of none: give it back."""

    tokens: list[int]


class You(msgspec.Struct, frozen=True):
    """Tell the learner to do something, and wait until it is done; `step` does the same."""

    text: str
    step: Train | Change | PreferStep | RewindStep | ScreenVerb


class Exercise(msgspec.Struct, frozen=True):
    """A task for the learner, solved when all claims hold; `solution` makes them hold.

    With `updates` they must hold after so many updates with the same settings, and not on the way there.
    """

    text: str
    claims: list[Expect]
    hint: str
    solution: list[Step]
    updates: int = 0


class Write(msgspec.Struct, frozen=True):
    """A writing exercise for the learner, by its name; solved once what is written agrees with the engine."""

    exercise: str
    text: str


class Watch(msgspec.Struct, frozen=True):
    """Say the claim's text as soon as the claim holds, while the run goes on to the next text."""

    claim: Expect


class RewindStep(msgspec.Struct, frozen=True):
    """Go back to the state after `update`; None means by one update."""

    update: int | None


class ScreenVerb(msgspec.Struct, frozen=True):
    """A verb of the screen; a run without a screen skips it."""

    verb: str
    argument: Any


Moving = Train | Change | PreferStep | WithholdStep | RewindStep
"""The steps that move the engine."""
Step = Say | Ask | You | Exercise | Write | Watch | Moving | ScreenVerb | Expect


def parse(script: list[dict[str, Any]]) -> list[Step]:
    """The steps of a script. Raises ValueError, one line that names the step by its number, from 1."""
    steps = []
    for number, entry in enumerate(script, start=1):
        try:
            steps.append(parse_step(entry))
        except ValueError as error:
            raise ValueError(f"script step {number}: {error}") from None
    return steps


def parse_step(entry: dict[str, Any]) -> Step:
    """One step. Raises ValueError with one line that says what is wrong and what is allowed."""
    if not isinstance(entry, dict) or len(entry) != 1:
        raise ValueError("a step is a mapping with one verb, as in '- update: 3'")
    ((verb, argument),) = entry.items()
    if verb not in VERBS:
        raise ValueError(f"unknown verb {quote(str(verb))}{did_you_mean(str(verb), list(VERBS))}")
    if verb == "tour":
        raise ValueError("a script cannot contain tour, which plays a script")
    if verb in _PACES:
        return Train(_PACES[verb], _count(verb, 1 if argument is None else argument, least=1))
    return _READERS.get(verb, _look)(verb, argument)


def _count(verb: str, argument: Any, least: int) -> int:
    if type(argument) is not int or argument < least:
        raise ValueError(f"{verb} takes a whole number, {least} or more; got {quote(argument)}")
    return argument


def _text(verb: str, argument: Any) -> str:
    if not isinstance(argument, str) or not argument.strip():
        raise ValueError(f"{verb} takes text; got {quote(argument)}")
    return " ".join(argument.split())


def _words(verb: str, argument: Any) -> Say:
    text = _text(verb, argument)
    if _ASKS_TO_TRY.search(text):
        raise ValueError("say asks the learner to try something: make it a step you or exercise, which waits for it")
    return Say(text)


_ASKS_TO_TRY = re.compile(r"(?:^|[.:;] )(?:Now )?[Tt]ry\b")


def _you(verb: str, argument: Any) -> You:
    if not isinstance(argument, dict) or len(argument) != 2 or "say" not in argument:
        raise ValueError(f"{verb} takes a mapping with say and one verb, as in {{say: Press `u`., update: 1}}")
    step = parse_step({name: value for name, value in argument.items() if name != "say"})
    if not isinstance(step, Train | Change | PreferStep | RewindStep | ScreenVerb):
        raise ValueError(f"{verb} takes a verb that the learner can perform, such as update, set or lens")
    return You(_text("say", argument["say"]), step)


def _exercise(verb: str, argument: Any) -> Exercise:
    keys = ("say", "expect", "hint", "solution")
    if not isinstance(argument, dict) or not set(keys) <= set(argument) <= {*keys, "updates"}:
        raise ValueError(f"{verb} takes a mapping with {', '.join(keys)} and, if the claims must last, updates")
    claims, solution = argument["expect"], argument["solution"]
    for name, given in (("expect", claims), ("solution", solution)):
        if not isinstance(given, list) or not given:
            raise ValueError(f"{name} of {verb} is a list with at least one entry")
    steps = [parse_step({entry: None} if isinstance(entry, str) else entry) for entry in solution]
    if odd := [step for step in steps if isinstance(step, Say | Ask | You | Exercise | Write | Watch | Expect)]:
        raise ValueError(f"solution of {verb} takes steps that move the run, and not {type(odd[0]).__name__.lower()}")
    texts = _text("say", argument["say"]), _text("hint", argument["hint"])
    updates = _count("updates", argument["updates"], least=1) if "updates" in argument else 0
    found = [parse_expect(claim) for claim in claims]
    if any(isinstance(claim.quantity, ShareValue) for claim in found):
        raise ValueError(
            f"{verb} takes no claim about a share, which takes the engine longer than a look at the records"
        )
    return Exercise(texts[0], found, texts[1], steps, updates)


def _write(verb: str, argument: Any) -> Write:
    given = argument if isinstance(argument, dict) else {"exercise": argument}
    if not {"exercise"} <= set(given) <= {"exercise", "say"} or not isinstance(given["exercise"], str):
        raise ValueError(f"{verb} takes the name of an exercise, or a mapping with say and exercise")
    exercise = exercise_called(given["exercise"])
    return Write(given["exercise"], _text("say", given.get("say", exercise.task)))


def _watch(verb: str, argument: Any) -> Watch:
    if not isinstance(argument, dict) or "say" not in argument or "metric" not in argument:
        raise ValueError(f"{verb} takes a mapping with metric, above or below, and say")
    claim = {name: value for name, value in argument.items() if name != "say"}
    if not set(claim) & set(Bounds.__struct_fields__):
        raise ValueError(f"{verb} needs above, below or equals")
    return Watch(parse_expect({"text": _text("say", argument["say"]), **claim}))


def _undo(verb: str, argument: Any) -> RewindStep:
    _refuse(verb, argument)
    return RewindStep(None)


def _refuse(verb: str, argument: Any) -> None:
    if argument is not None:
        raise ValueError(f"{verb} takes no argument; got {quote(argument)}")


def _ask(_verb: str, argument: Any) -> Ask:
    keys = ("question", "choices", "answer", "because")
    if not isinstance(argument, dict) or set(argument) - {"curve", "ways"} != set(keys):
        raise ValueError(f"ask takes a mapping with {', '.join(keys)}, and perhaps curve and ways")
    choices = argument["choices"]
    if not isinstance(choices, list) or not 2 <= len(choices) <= _MOST_CHOICES:
        raise ValueError(f"ask takes 2 to {_MOST_CHOICES} choices, one for each digit")
    if any(isinstance(choice, bool) for choice in choices):
        raise ValueError("a choice of ask is yes or no without quotes, which YAML reads as true or false; quote it")
    words = [_text("a choice of ask", choice if isinstance(choice, str) else str(choice)) for choice in choices]
    if len(set(words)) < len(words):
        raise ValueError(f"two choices of ask are the same: {', '.join(map(brief, words))}")
    answer = " ".join(str(argument["answer"]).split())
    if answer not in words:
        raise ValueError(f"the answer {quote(answer)} of ask is not one of its choices: {', '.join(map(brief, words))}")
    curve, ways = _on_curve(argument, len(words))
    return Ask(
        _text("question", argument["question"]), words, words.index(answer), _text("because", argument["because"]),
        curve, ways,
    )  # fmt: skip


def _on_curve(argument: dict[str, Any], choices: int) -> tuple[str, list[Way]]:
    """The metric that a question is about, and the way of each choice; "" and none if it is about none."""
    if not {"curve", "ways"} & argument.keys():
        return "", []
    curve, ways = argument.get("curve"), argument.get("ways")
    if not isinstance(curve, str) or describe(curve) is None:
        raise ValueError(f"curve of ask takes a metric, as in completions/mean_length; got {quote(curve)}")
    if not isinstance(ways, list) or len(ways) != choices or any(way not in get_args(Way) for way in ways):
        raise ValueError(f"ways of ask takes {', '.join(get_args(Way))}, one for each choice; got {quote(ways)}")
    return curve, ways


def _change(_verb: str, argument: Any) -> Change:
    if not isinstance(argument, dict) or not argument:
        raise ValueError("set takes a mapping of settings, as in {beta: 0.1}")
    return Change({str(name): check(str(name), value) for name, value in argument.items()})


def _prefer(verb: str, argument: Any) -> PreferStep:
    choices = argument if isinstance(argument, list) else [argument]
    if not choices or any(choice not in get_args(Choice) for choice in choices):
        raise ValueError(f"{verb} takes a, b or skip, or a list of them; got {quote(argument)}")
    return PreferStep(choices)


def _withhold(verb: str, argument: Any) -> WithholdStep:
    if not isinstance(argument, list) or any(type(each) is not int for each in argument):
        raise ValueError(f"{verb} takes a list of places of tokens, as in [3, 4]; got {quote(argument)}")
    return WithholdStep(argument)


def _look(verb: str, argument: Any) -> ScreenVerb:
    if argument is None and verb not in ("curve", "focus", "sort", "stage", "maths"):
        return ScreenVerb(verb, None)
    match verb:
        case "lens" | "knobs" | "panel" | "stage" | "slider" | "weights":
            _known("setting" if verb == "knobs" else verb, argument, _NAMES[verb])
        case "curve":
            if describe(_text(verb, argument)) is None and pair_of(argument) is None:
                _known("metric", argument, [*METRICS, *MAP_VIEWS])
        case "maths":
            if not isinstance(argument, bool):
                raise ValueError(f"maths takes true or false; got {quote(str(argument))}")
        case "sort":  # columns differ between datasets: only the screen knows them
            _text(verb, argument)
        case "find":
            parse_find(str(argument))
        case "glossary":
            from rlplay.glossary import term_called  # reads files

            term_called(_text(verb, argument))
        case "focus":
            check_focus(argument)
        case "probe" | "teachers":
            check_mapping(verb, argument)
        case _:
            _refuse(verb, argument)
    return ScreenVerb(verb, argument)


def _morph(verb: str, argument: Any) -> ScreenVerb:
    return ScreenVerb(verb, None if argument is None else _count(verb, argument, least=0))


_NAMES: dict[str, Sequence[str]] = {
    "slider": SLIDERS,
    "lens": ["auto", *LENSES],
    "knobs": list(KNOBS),
    "panel": PANELS,
    "stage": STAGES,
    "weights": WEIGHT_VIEWS,
}
"""The names that a verb takes."""


def _known(what: str, name: Any, known: Sequence[str]) -> None:
    if name not in known:
        raise ValueError(f"unknown {what} {quote(str(name))}{did_you_mean(str(name), known)}")


_READERS: dict[str, Callable[[str, Any], Step]] = {
    "say": _words,
    "you": _you,
    "exercise": _exercise,
    "watch": _watch,
    "write": _write,
    "ask": _ask,
    "set": _change,
    "prefer": _prefer,
    "withhold": _withhold,
    "rewind": lambda verb, argument: RewindStep(_count(verb, argument, least=0)),
    "undo": _undo,
    "morph": _morph,
    "expect": lambda _verb, argument: parse_expect(argument),
}
