"""The registry of everything a user can do, for keys, palette, footer, help, scripts and the headless runner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Verb:
    """One action. `keys` are Textual key names; a verb without keys is in the palette or in scripts only.

    `where` says what executes it: the engine (a headless run does it too), the screen (a headless run skips it) or the
    script itself. `argument` describes its argument in a script; empty if it takes none. `words` are synonyms, by which
    the palette also finds it.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    group: Literal["engine", "look", "panels", "script", "program"]
    where: Literal["engine", "screen", "script"]
    help: str
    argument: str = ""
    words: str = ""


PANELS = ("answers", "tokens", "token", "curves")
"""The panels that the verb `panel` takes."""
STAGES = ("token", "answers", "map", "curve", "pair", "conversation", "tree", "river", "position", "all")
"""What the screen gives its room to, as the verb `stage` takes it: one subject, or all panels."""
SLIDERS = ("temperature", "gamma", "lam", "epsilon", "beta", "gap")
"""What the verb slider takes: settings, and the gap of two scores."""
MAP_VIEWS = ("map", "value map", "optimal map")
"""What the verb curve shows of a world, besides metrics."""
WEIGHT_VIEWS = ("moved", "layers", "neighbours")
"""What the verb weights shows first."""
VIEWS = ("belief", "tree", "pull", "learning", "position")
"""The views with a verb of their own, which take the place of any curve."""

VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("run", "run/pause", ("space",), "engine", "engine",
             "Run freely; press again to pause. In a script: run that many updates.", "number of updates",
             words="start train go stop halt"),
        Verb("token", "token", ("full_stop",), "engine", "engine",
             "Sample the next token of every answer.", "number of tokens"),
        Verb("phase", "phase", ("n",), "engine", "engine",
             "Finish the phase: sample, score, credit, update, after.", "number of phases"),
        Verb("step", "step", ("s",), "engine", "engine",
             "Take one optimizer step.", "number of steps"),
        Verb("update", "update", ("u",), "engine", "engine",
             "Finish the update.", "number of updates"),
        Verb("undo", "undo", ("z",), "engine", "engine",
             "Go back one update: weights, optimizer, settings and random numbers.",
             words="revert take back"),
        Verb("rewind", "back to the start", ("Z",), "engine", "engine",
             "Go back to the start, settings included; in a script, to the state after an update.", "update",
             words="restart reset begin again"),
        Verb("set", "set", (), "engine", "engine",
             "Change settings; live, no restart.", "mapping of settings"),
        Verb("prefer", "which is better?", ("A",), "engine", "engine",
             "Label pairs (with labeller=user): two answers side by side, ← or → for the better one.",
             "a, b or skip, or a list of them"),
        Verb("withhold", "without credit", (), "engine", "engine",
             "Take the credit of tokens of the next update away, by their places in it.",
             "list of places of tokens"),
        Verb("resume", "resume", ("r",), "engine", "screen",
             "Start the engine again after it has ended, from the run's last snapshot.",
             words="continue go on crash"),
        Verb("lens", "colour", ("c",), "look", "screen",
             "Colour the tokens by the next statistic.", "lens name, or auto",
             words="color heatmap"),
        Verb("colours", "all colours", ("C",), "look", "screen",
             "Choose the statistic that colours the tokens from a list that says what each means.",
             words="color heatmap lens legend pick"),
        Verb("lens_back", "colour back", (), "look", "screen", "Colour the tokens by the previous statistic."),
        Verb("focus", "focus", (), "look", "screen",
             "Put the cursor on a token.", "mapping with completion and token"),
        Verb("older", "older update", ("left_square_bracket",), "look", "screen",
             "Look at the previous update; training is not interrupted."),
        Verb("newer", "newer update", ("right_square_bracket",), "look", "screen", "Look at the next update."),
        Verb("live", "back to live", ("v",), "look", "screen", "Look at what the engine is doing now."),
        Verb("largest", "largest", ("x",), "look", "screen",
             "Put the cursor on the token with the largest value of the colour, such as the most credit.",
             words="biggest maximum most"),
        Verb("smallest", "smallest", ("X",), "look", "screen",
             "Put the cursor on the token with the smallest value of the colour, such as the most blame.",
             words="lowest minimum most blamed negative"),
        Verb("copy", "copy", ("y",), "look", "screen",
             "Copy what has the focus: the token, the answer, the details of the token, the values of a curve.",
             words="clipboard"),
        Verb("shot", "save the view", ("w",), "look", "screen",
             "Save the screen beside the run: as a drawing (SVG), a picture (PNG) and text.",
             words="picture screenshot image drawing export"),
        Verb("curve", "curve", (), "look", "screen", "Show the curve of a metric or of two, or a map of a world.",
             "metric, two metrics (reward over gold/helpful/mean), map, value map or optimal map"),
        Verb("belief", "belief river", ("B",), "look", "screen",
             "Show the probabilities of the tokens at the cursor, at first the first token, over all updates.",
             words="distribution probability candidates stacked river"),
        Verb("tree", "answer tree", ("T",), "look", "screen",
             "Show the answers of the prompt at the cursor as a tree, merged where they agree, with mean rewards.",
             words="branches trie group beginnings value"),
        Verb("pull", "pull map", ("P",), "look", "screen",
             "Show a dot for each token: its importance ratio across, its advantage up; clipped tokens stand out.",
             words="scatter ratio advantage clip silent corners"),
        Verb("learning", "learning map", ("E",), "look", "screen",
             "Show the held-out prompts over all evaluations: learned, forgotten, never, always; enter reads answers.",
             words="evaluation validation flip forgotten learned heldout"),
        Verb("position", "by position", ("Q",), "look", "screen",
             "Show the statistic of the colours over the position in the answer: a dot for each token, with quantiles.",
             words="plot scatter place mismatch sampler difference entropy quantiles distribution zoom"),
        Verb("signs", "marks", ("m",), "look", "screen",
             "Show white space, special tokens and each token's value as a number.",
             words="numbers whitespace"),
        Verb("maths", "formulas", (), "look", "screen",
             "Show the formulas of the selected token with its numbers, or words and bars; enter in Token does it.",
             "true or false, or nothing", words="math equations loss numbers details"),
        Verb("motion", "reduced motion", (), "look", "screen",
             "Let bars and colours change at once instead of moving there, or let them move again; remembered.",
             words="animation animate still calm accessibility"),
        Verb("sort", "sort", ("o",), "look", "screen",
             "Sort the answers by reward, advantage, length, a column of the dataset, or a number that was logged.",
             "name, -name for the smallest first, or as sampled", words="order column"),
        Verb("unfold", "unfold", (), "look", "screen",
             "Show a long answer in full, or every answer that the line stands for (×8); again folds them.",
             words="fold expand collapse whole full identical"),
        Verb("find", "find", ("slash",), "look", "screen",
             "Show only the answers that match a number (reward<0.5, ratio>1.2), clipped, or a text; esc shows all.",
             "expression, or empty text for all",
             words="search filter"),
        Verb("match", "next found", ("f",), "look", "screen", "Go to the next token or answer that / found."),
        Verb("match_back", "previous found", ("F",), "look", "screen",
             "Go to the previous token or answer that / found."),
        Verb("panel", "view", ("p",), "look", "screen",
             "Give the room to the next subject: all panels, a token, the answers, a curve. tab moves the focus.",
             "answers, tokens, token or curves, or nothing", words="stage layout subject large big zoom"),
        Verb("walk", "walk", (), "look", "screen",
             "Walk on the map of a world: arrow keys move, esc ends. Your return is shown beside the policy's.",
             words="play maze world map move yourself try"),
        Verb("paint", "paint", ("number_sign",), "look", "screen",
             "Paint squares of the map, by mouse or keys: walls, ice, holes, stars, rewards. Training goes on.",
             words="draw edit world map wall ice reward star goal hole brush"),
        Verb("stage", "stage", (), "look", "screen",
             "Give the room to one subject: token, answers, map, curve, pair, conversation, tree, river, or all.",
             ", ".join(STAGES), words="layout subject large big zoom"),
        Verb("present", "present", ("f5",), "look", "screen",
             "For a projector: only the subject and the sentence about it; page down goes on. Again: all panels.",
             words="presenter projector teacher class slides full screen large"),
        Verb("knobs", "knobs", ("k",), "panels", "screen", "See and change every setting of the run.",
             "setting to go to, or nothing",
             words="settings options parameters hyperparameters"),
        Verb("slider", "slider", (), "panels", "screen",
             "Slide temperature, γ, λ, ε, β or the gap of two scores, and see what another value would do.",
             "temperature, gamma, lam, epsilon, beta or gap", words="drag bradley terry sigma what if"),
        Verb("paste", "paste share code", (), "panels", "screen",
             "Apply the settings of a share code (rlp1-…); the knobs panel shows the code of this run."),
        Verb("surrogate", "surrogate", ("K",), "panels", "screen",
             "The objective over the ratio as a picture: drag its walls, and see how many tokens have no gradient.",
             words="clip epsilon wall ppo objective picture drag flat"),
        Verb("reach", "other rewards", ("I",), "panels", "screen",
             "Drag the probability of the token under the cursor, and see what reward of its answer would lead there.",
             words="reward drag probability what if counterfactual"),
        Verb("timeline", "timeline", ("g",), "panels", "screen",
             "All updates: look at one while training continues, go back to it, or branch from it.",
             words="history past"),
        Verb("branch", "branch", (), "engine", "screen",
             "Start a second run from the state after an update, with other settings; this run does not change.",
             words="what if fork experiment"),
        Verb("compare", "compare", ("b",), "panels", "screen",
             "This run beside its branch. Without a branch, start one from the update you look at, or from the last.",
             words="what if side by side branch difference"),
        Verb("probe", "probe", ("i",), "panels", "screen",
             "What comes next here, how that changed in the run, what another token would do, what this text is worth.",
             "mapping with prompt, columns, plain or completion, token; force: a token's text; then: samples, value, "
             "greedy or course",
             words="ask question prompt type chat what if why over the run course history"),
        Verb("weights", "weights", ("W",), "panels", "screen",
             "What the update moved in the weights, what each layer says of the token, which tokens are like it.",
             "moved, layers or neighbours, or nothing",
             words="layers matrices norm rank lora logit lens embedding neighbours parameters policy"),
        Verb("teachers", "why", ("Y",), "panels", "screen",
             "Who taught it that? Which answers moved the token under the cursor, and where it would be without them.",
             "mapping with completion or prompt, token and candidate (a token's text), or nothing",
             words="why influence credit share attribution cause rose fell taught gradient"),
        Verb("health", "health", ("h",), "panels", "screen",
             "Why does it not learn? Every check of this run, with its numbers and what to try.",
             words="problem diagnosis trouble broken"),
        Verb("try", "try a repair", ("exclamation_mark",), "panels", "screen",
             "Try what may help against a problem of the run, beside the unchanged run, from the same snapshot.",
             words="repair fix remedy experiment cure rehearse"),
        Verb("held_out", "held-out answers", ("e",), "panels", "screen",
             "The answers to the held-out prompts, which are never trained on, each with its reward.",
             words="evaluation validation test set generalise generalize"),
        Verb("morph", "answers over time", (), "panels", "screen",
             "A held-out prompt at every evaluation: its answer before training, later, and now; space plays them.",
             "update, or nothing", words="morph evaluation validation flip forgotten learned heldout read"),
        Verb("moments", "before and after", ("O",), "panels", "screen",
             "Which answers got better or worse since the start; in the timeline, between the two updates you choose.",
             words="diff difference worse better changed regress moments old new two updates"),
        Verb("log", "log", ("f12",), "panels", "screen", "Engine messages, device, timings.",
             words="error warning"),
        Verb("help", "help", ("question_mark", "f1"), "panels", "screen",
             "What the focused panel shows, with its formula.",
             words="why explain"),
        Verb("glossary", "glossary", ("d",), "panels", "screen",
             "What the terms mean, and where to see each of them live.", "term, or nothing",
             words="dictionary meaning definition explain why"),
        Verb("lessons", "lessons", ("l",), "panels", "screen",
             "What each lesson teaches, how far you played it, what you answered; enter starts one. This run is kept.",
             words="learn teach course scenario progress quiz"),
        Verb("tour", "lesson", ("t",), "script", "screen",
             "Play the lesson to its next step.",
             words="tutorial guide teach course"),
        Verb("say", "say", (), "script", "script", "Show a text to the user.", "text"),
        Verb("ask", "ask", (), "script", "script",
             "Ask, wait for a prediction, then reveal.", "mapping with question, choices, answer, because"),
        Verb("you", "you", (), "script", "script",
             "Tell the learner to do something, and wait until it is done.", "mapping with say and a verb"),
        Verb("exercise", "exercise", (), "script", "script",
             "Set the learner a task, solved once its claims hold.", "mapping with say, expect, hint, solution"),
        Verb("write", "write", ("J",), "script", "script",
             "Write a few lines of Python; they run on this batch and are compared with the engine's numbers.",
             "name of a writing exercise", words="code editor type python exercise program function"),
        Verb("watch", "watch", (), "script", "script",
             "Say something during a long run, as soon as a claim holds.", "mapping with metric, a bound, say"),
        Verb("expect", "expect", (), "script", "script",
             "Check a claim against the records of the run.", "mapping, see docs/scenarios.md"),
        Verb("quit", "quit", ("q",), "program", "screen", "Leave; the run stays on disk.",
             words="exit leave close end"),
    )
}  # fmt: skip
