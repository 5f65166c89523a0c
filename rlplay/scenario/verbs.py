"""Everything a user can do, once: keys, palette, footer, help, scenario scripts and the headless runner read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Verb:
    """One action. `keys` are Textual key names; verbs without keys are reached from the palette or a script.

    `where` says who carries it out: the engine (a headless run does it too), the screen (a headless run passes
    over it) or the script itself. `argument` describes what a script writes after it; empty for none. `words` are
    others for it, by which the palette finds it too.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    group: Literal["engine", "look", "panels", "script", "program"]
    where: Literal["engine", "screen", "script"]
    help: str
    argument: str = ""
    footer: bool = False
    words: str = ""


PANELS = ("answers", "tokens", "token", "curves")
"""What the verb `panel` can be given to go to."""

VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("run", "run/pause", ("space",), "engine", "engine",
             "Run freely; again to pause. In a script: run that many updates.", "number of updates", True,
             words="start train go stop halt"),
        Verb("token", "token", ("full_stop",), "engine", "engine",
             "Sample the next token of every completion.", "number of tokens", True),
        Verb("phase", "phase", ("n",), "engine", "engine",
             "Finish the phase: sample, score, credit, update, after.", "number of phases", True),
        Verb("step", "step", ("s",), "engine", "engine",
             "Take one optimizer step.", "number of steps", True),
        Verb("update", "update", ("u",), "engine", "engine",
             "Finish the update.", "number of updates", True),
        Verb("undo", "undo", ("z",), "engine", "engine",
             "Go back by one update: weights, optimizer and random numbers.", "", True,
             words="revert take back"),
        Verb("rewind", "back to the start", ("Z",), "engine", "engine",
             "Go back to the start; in a script, to the state after an update.", "update",
             words="restart reset begin again"),
        Verb("set", "set", (), "engine", "engine",
             "Change settings; live, no restart.", "mapping of settings"),
        Verb("prefer", "which is better?", ("a",), "engine", "engine",
             "Where you label pairs (labeller=user): both answers side by side, a or b is better.",
             "a, b or skip, or a list of them"),
        Verb("resume", "resume", ("r",), "engine", "screen",
             "Start the engine again after it ended, from the run's last snapshot.",
             words="continue go on crash"),
        Verb("lens", "colour", ("c",), "look", "screen",
             "Colour the tokens by the next statistic.", "lens name, or auto", True,
             words="color heatmap"),
        Verb("lens_back", "colour back", ("C",), "look", "screen", "Colour the tokens by the previous statistic."),
        Verb("focus", "focus", (), "look", "screen",
             "Put the cursor on a token.", "mapping with completion and token"),
        Verb("older", "older update", ("left_square_bracket",), "look", "screen",
             "Look at the update before; the engine goes on."),
        Verb("newer", "newer update", ("right_square_bracket",), "look", "screen", "Look at the update after."),
        Verb("live", "back to live", ("v",), "look", "screen", "Look at what the engine is doing now."),
        Verb("most", "largest", ("x",), "look", "screen",
             "Put the cursor on the token with the largest value of the colour, such as the most credit.",
             words="biggest maximum most"),
        Verb("copy", "copy", ("y",), "look", "screen",
             "Copy what has the focus: the token, the answer, all about the token, the values of a curve.",
             words="clipboard"),
        Verb("shot", "save the view", ("w",), "look", "screen",
             "Write the screen beside the run: as a drawing (SVG), a picture (PNG) and text.",
             words="picture screenshot image drawing export"),
        Verb("curve", "curve", (), "look", "screen", "Put up the curve of a metric.", "metric name"),
        Verb("signs", "marks", ("m",), "look", "screen",
             "Show white space, special tokens and each token's value as a number.",
             words="numbers whitespace"),
        Verb("sort", "sort", ("o",), "look", "screen", "Sort the answers of each prompt: reward, advantage, length.",
             words="order"),
        Verb("find", "find", ("slash",), "look", "screen",
             "Show only the answers that fit: by number (reward<0.5, ratio>1.2), clipped, or by text; esc shows all.",
             "expression, or empty text for all", True,
             words="search filter"),
        Verb("match", "next found", ("f",), "look", "screen", "Go to the next token or answer that `/` has found."),
        Verb("match_back", "found before", ("F",), "look", "screen", "Go to the token or answer found before."),
        Verb("panel", "panels", ("p",), "look", "screen",
             "Other panels: answers, token, curves; on a wide screen the curves large. tab moves the focus.",
             "answers, tokens, token or curves, or nothing", True),
        Verb("knobs", "knobs", ("k",), "panels", "screen", "Every setting of the run: see and change it.",
             "setting to go to, or nothing", True,
             words="settings options parameters hyperparameters"),
        Verb("paste", "paste share code", (), "panels", "screen",
             "Set the settings that a share code (rlp1-…) holds; the knobs show the code of this run."),
        Verb("timeline", "timeline", ("g",), "panels", "screen",
             "All updates: look at one while the engine goes on, go back to it, or branch from it.", "", True,
             words="history past"),
        Verb("branch", "branch", (), "engine", "screen",
             "Start a second run from the state after an update, with other settings; this run does not change.",
             words="what if fork experiment"),
        Verb("compare", "compare", ("b",), "panels", "screen",
             "This run beside its branch; until there is one, branch off from the update looked at, else the last.",
             words="what if side by side branch difference"),
        Verb("probe", "probe", ("i",), "panels", "screen",
             "Ask the model: what comes next here, how did that change, what if it were another, what is it worth.",
             "mapping with prompt, columns, plain or completion, token; then: samples, value, greedy or course",
             words="ask question prompt type chat what if why over the run course history"),
        Verb("health", "health", ("h",), "panels", "screen",
             "Why does it not learn? What is wrong with this run, if anything: every check, its numbers, what to try.",
             words="problem diagnosis trouble broken"),
        Verb("log", "log", ("f12",), "panels", "screen", "Engine messages, device, timings.",
             words="error warning"),
        Verb("help", "help", ("question_mark", "f1"), "panels", "screen",
             "What the focused panel shows, with its formula.", "", True,
             words="why explain"),
        Verb("glossary", "glossary", ("d",), "panels", "screen",
             "What the words mean, in plain English, and where each can be seen live.", "term, or nothing",
             words="dictionary meaning definition explain why"),
        Verb("lessons", "lessons", ("l",), "panels", "screen",
             "What each bundled scenario teaches and how far you played it; enter plays another, this run is kept.",
             words="learn teach course scenario progress quiz"),
        Verb("orientation", "orientation", (), "panels", "screen",
             "The screen in four cards: its panels, and the keys to begin with.",
             words="introduction tutorial start"),
        Verb("tour", "lesson", ("t",), "script", "screen",
             "Play the scenario's script to its next step.", "", True,
             words="tutorial guide teach course"),
        Verb("say", "say", (), "script", "script", "Tell the user something.", "text"),
        Verb("ask", "ask", (), "script", "script",
             "Ask, wait for a prediction, then reveal.", "mapping with question, choices, answer, because"),
        Verb("expect", "expect", (), "script", "script",
             "Check a claim against what happened.", "mapping, see expect.py"),
        Verb("quit", "quit", ("q",), "program", "screen", "Leave; the run stays on disk.", "", True,
             words="exit leave close end"),
    )
}  # fmt: skip
