"""Malformed scenario files outside worlds: each is refused with the line, what is wrong there, and what is allowed."""

from pathlib import Path

import pytest

from rlplay.scenario.loader import ScenarioError, load

HEAD = "title: T\nquestion: Q\n"
BASE = HEAD + "task: arithmetic\n"
WORLD = HEAD + "world: {map: [S.G]}\n"


def step(text: str) -> str:
    """A scenario whose second step, in line 6, is `text`."""
    return f"{BASE}script:\n  - say: First.\n  - {text}\n"


def ask(choices: str, answer: str = "a", more: str = "") -> str:
    return step(f"ask: {{question: 'Up?', choices: [{choices}], answer: {answer}, because: x{more}}}")


def claim(text: str) -> str:
    return step(f"expect: {{text: a, {text}}}")


CASES = [
    # the head
    ("title: 3\nquestion: Q\ntask: arithmetic\n", 1, "title takes text; got 3"),
    ("title: ''\nquestion: Q\ntask: arithmetic\n", 1, "title takes text; got ''"),
    (BASE + "summary: [a]\n", 4, "summary takes text; got ['a']"),
    (BASE + "model: 3\n", 4, "model takes text; got 3"),
    (BASE + "model: no/such/folder\n", 4, "model no/such/folder: no such folder"),
    (BASE + "model: table\n", 4, "model table chooses moves in a world"),
    (HEAD + "dataset: 3\n", 3, "dataset takes text; got 3"),
    (HEAD + "dataset: none.csv\n", 3, "dataset none.csv: no such file"),
    (BASE + "dataset_config: main\n", 4, "belong to a Hugging Face dataset; this scenario has none"),
    (BASE + "reward: score.py:f\n", 4, "reward takes a list of texts; got 'score.py:f'"),
    (BASE + "reward: [score.py]\n", 4, "a reward takes the form MODULE:FUNCTION or FILE.py:FUNCTION"),
    (BASE + "reward: [score.py:f]\n", 4, "reward score.py:f: there is no file score.py"),
    (BASE + "prompts: What is 2+2?\n", 4, "prompts takes a list of texts"),
    (BASE + "prompts: []\n", 4, "prompts takes a list of texts; got []"),
    (BASE + "prompts: [3]\n", 4, "prompts takes a list of texts; got [3]"),
    (BASE + "world: {arms: {a: 1, b: 0}}\n", 1, "either a task, a world or a dataset"),
    (BASE + "eval_generations: 0\n", 4, "eval_generations takes a whole number, 1 or more; got 0"),
    (BASE + "settings:\n\tbeta: 1\n", 5, "not YAML"),
    # settings and rewards
    (BASE + "settings: [beta]\n", 4, "settings is a mapping, as in {beta: 0.1}"),
    (BASE + "settings:\n  beta: 0.1\n  temperature: 0\n", 6, "temperature is a number from 0.05 to 5, e.g. 1; got 0"),
    (BASE + "settings:\n  surrogate: pppo\n", 5, "got 'pppo'; did you mean 'ppo'?"),
    (BASE + "settings:\n  beta:\n", 5, "beta is a number from 0 to 10; got None"),
    (BASE + "settings:\n  dynamic_sampling: perhaps\n", 5, "dynamic_sampling is on or off; got 'perhaps'"),
    (BASE + "settings:\n  reward_weights: 3\n", 5, "a weight for each reward by name, e.g. {correct: 1}; got 3"),
    (BASE + "settings: {algorithm: grop}\n", 4, "unknown algorithm 'grop'; nearest are grpo"),
    # stages
    (BASE + "stages: {name: a}\n", 4, "stages is a list"),
    (BASE + "stages:\n  - {name: a, updates: 3}\n  - {name: b, update: 3}\n", 6, "stage 2: unknown key 'update'"),
    (BASE + "stages:\n  - {name: a, updates: 3}\n  - {name: a, updates: 3}\n", 6, "a name that no other stage has"),
    (BASE + "stages:\n  - {name: a, updates: 0}\n", 5, "stage 1: updates takes a whole number, 1 or more; got 0"),
    (BASE + "max_updates: 3\nstages:\n  - {name: a, updates: 3}\n", 4, "leave it out"),
    # steps
    (step("sya: b"), 6, "script step 2: unknown verb 'sya'; did you mean 'say'?"),
    (step("[say, a]"), 6, "a step is a mapping with one verb"),
    (step("say:"), 6, "say takes text; got None"),
    (step("say: Try a higher temperature."), 6, "make it a step you or exercise"),
    (step("update: 0"), 6, "update takes a whole number, 1 or more; got 0"),
    (step("rewind: -1"), 6, "rewind takes a whole number, 0 or more; got -1"),
    (step("undo: 1"), 6, "undo takes no argument; got 1"),
    (step("set: beta"), 6, "set takes a mapping of settings"),
    (step("set: {betta: 1}"), 6, "unknown setting 'betta'; did you mean 'beta'?"),
    (step("prefer: [c]"), 6, "prefer takes a, b or skip"),
    (step("tour"), 6, "a script cannot contain tour"),
    # the screen
    (step("lens: kredit"), 6, "unknown lens 'kredit'; did you mean 'credit'?"),
    (step("panel: map"), 6, "unknown panel 'map'; known: answers, tokens, token, curves"),
    (step("curve: rewrd"), 6, "unknown metric 'rewrd'; did you mean 'reward'?"),
    (step("knobs: betta"), 6, "unknown setting 'betta'; did you mean 'beta'?"),
    (step("glossary: advantag"), 6, "the glossary has no 'advantag'; did you mean 'Advantage'?"),
    (step("find: 'reward<'"), 6, "'reward<' is not a comparison"),
    (step("focus: {completion: -1}"), 6, "focus takes a mapping with completion and token, each a whole number from 0"),
    (step("probe: {prompt: x, then: guess}"), 6, "then of probe is one of samples, value, greedy, course; got 'guess'"),
    (step("signs: length"), 6, "signs takes no argument; got 'length'"),
    (step("sort:"), 6, "sort takes text; got None"),
    # questions
    (ask("a"), 6, "ask takes 2 to 9 choices"),
    (ask("a, b, c, d, e, f, g, h, i, j"), 6, "ask takes 2 to 9 choices"),
    (ask("a, b", "c"), 6, "the answer 'c' of ask is not one of its choices: a, b"),
    (ask("yes, no", "yes"), 6, "without quotes, which YAML reads as true or false; quote it"),
    (ask("a, a"), 6, "two choices of ask are the same: a, a"),
    (ask("a, b", more=", curve: rewrd, ways: [falls, rises]"), 6, "curve of ask takes a metric"),
    (ask("a, b", more=", ways: [falls, rises]"), 6, "curve of ask takes a metric"),
    (
        ask("a, b", more=", curve: reward, ways: [falls]"),
        6,
        "ways of ask takes falls, stays, rises, one for each choice",
    ),
    (ask("a, b", more=", curve: reward, ways: [up, down]"), 6, "ways of ask takes falls, stays, rises"),
    # claims
    (step("expect: {metric: reward, above: 1}"), 6, "expect takes a mapping with text"),
    (claim("metric: reward"), 6, "expect needs above, below or equals"),
    (claim("metric: rewrd, above: 1"), 6, "unknown metric 'rewrd'; did you mean 'reward'?"),
    (claim("metric: reward, minus_metric: rewrd, above: 1"), 6, "unknown metric 'rewrd'"),
    (claim("metric: reward, above: high"), 6, "above of expect takes a number; got 'high'"),
    (claim("metric: reward, above: .nan"), 6, "above of expect takes a number; got nan"),
    (claim("metric: reward, at: -1, above: 1"), 6, "or highest or lowest; got -1"),
    (claim("metric: reward, minus: lastt, above: 1"), 6, "or lowest or undone; got 'lastt'"),
    (claim("metric: reward, abov: 1"), 6, "expect does not know 'abov' here"),
    (claim("metric: reward, above: 2, below: 1"), 6, "no value is above 2 and below 1"),
    (claim("metric: reward, lens: credit, above: 1"), 6, "exactly one of metric, probability, lens, square"),
    (claim("lens: credit, of: middle, above: 1"), 6, "of of expect takes token or mean or min or max or range"),
    (claim("probability: 3, above: 1"), 6, "probability of expect takes text; got 3"),
    (claim("square: a1, move: →, above: 1"), 6, "square 'a1' of expect needs a world; this scenario has none"),
    (
        claim("square: z9, of: value, above: 1").replace(BASE, WORLD),
        6,
        "no square 'z9'; known: a1, b1, c1",
    ),
    (claim("square: a1, move: up, above: 1").replace(BASE, WORLD), 6, "no move 'up'; known: ↑, →, ↓, ←"),
    (step("watch: {metric: reward, say: x}"), 6, "watch needs above, below or equals"),
    (step("watch: {metric: rewrd, above: 1, say: x}"), 6, "unknown metric 'rewrd'"),
    # what follows the script
    (BASE + "card:\n  takeaway: x\n  sources: [a]\n  formula: 3\n", 4, "formula of card takes text; got 3"),
    (BASE + "card: {takeaway: x, sources: }\n", 4, "sources of card takes a list of texts; got None"),
    (BASE + "quiz:\n", 4, "quiz is a list of questions"),
    (BASE + "shows: [1, 61]\n", 4, "whole numbers from 1 to 60; got [1, 61]"),
    (BASE + "knobs:\n  - beta\n  - betta\n", 6, "knobs: unknown setting 'betta'; did you mean 'beta'?"),
]


@pytest.mark.parametrize(("text", "line", "words"), CASES)
def test_a_mistake_is_refused_with_its_line_and_what_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert words in message
    assert "\n" not in message
    assert "$." not in message, "no path into a data structure"
