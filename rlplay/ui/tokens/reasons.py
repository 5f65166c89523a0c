"""A token in plain words: what the model thought of it, what its answer earned, and what the update did to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlplay.algorithms.settings import Settings
from rlplay.trace.kinds import REWARDED
from rlplay.trace.lenses import LENSES
from rlplay.trace.numbers import number, percent
from rlplay.trace.records import LEFT_OUT as WHY_LEFT_OUT
from rlplay.trace.records import TOO_FAR, Scored
from rlplay.trace.update import Update
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.tokens.facts import AnswerFacts
from rlplay.ui.tokens.token_layout import MARKS
from rlplay.ui.words.pair_updates import LEFT_OUT, label

_SLIGHT = 0.005
"""A smaller change of a probability does not show in its two decimals."""
_RATIO = 1.25
"""A probability that became so many times larger or smaller has moved, however small it is."""
_NOTHING = 1e-6
"""A smaller advantage counts as 0."""
_NO_REWARD = "No baseline: the reward itself pulls. It is 0 here, so nothing pulls (advantage 0)."
_NOT_SAMPLED = "Nobody sampled it: the turn's text was tokenized again."
RIGHT = "correct"
"""The part of a reward that is 1 for a right answer and 0 for a wrong one."""


def thought(facts: AnswerFacts, token: int, word: str) -> str:
    """How likely the model found a token when it sampled it, and what it found likelier; "" if that is unknown.

    `word` names what is sampled.
    """
    sampled = facts.sampled
    own = float(np.exp(sampled.old_logprobs[token]))
    if not np.isfinite(own):
        return ""
    who = "model" if word == "token" else "policy"
    said, ids = f"The {who} gave it {_about(own)}", [int(each) for each in sampled.top_ids[token]]
    chosen = int(sampled.token_ids[token])
    if not ids:
        return f"{said}."
    if ids[0] == chosen:
        return f"{said}: its first choice."
    likeliest, share = quoted(sampled.pieces.get(ids[0], "")), _about(float(np.exp(sampled.top_logprobs[token][0])))
    return f"{said}; its first choice was {likeliest}, {share}."


def reasons(update: Update, completion: int, facts: AnswerFacts, token: int, s: Settings, numbers: TokenNumbers) -> str:
    """Why the update treats a token as it does, as far as the update has come: some short sentences, "" at first."""
    said = [_NOT_SAMPLED] if s.retokenize_turns and facts.unsampled(token) else []
    said += [] if update.scored is None else [_earned(update, update.scored, completion, s)]
    if facts.withheld(token):
        said.append(f"The credit of this {update.step_word} is taken away, so it does not pull.")
    elif s.distils and s.distillation_weight == 1 and numbers.advantage is not None:
        said.append(_taught(s, numbers.advantage))
    elif s.axes_known and numbers.advantage is not None:
        said.append(_judged(update, completion, s, numbers))
    if numbers.clip_state:
        ratio = "" if numbers.ratio is None else f" at {number(numbers.ratio)} times its probability"
        said.append(f"{MARKS[numbers.clip_state]} clipped{ratio}: it has moved enough, so the last step let it be.")
    said.append(_moved(update, completion, facts, token))
    return " ".join(filter(None, said))


def _earned(update: Update, scored: Scored, completion: int, s: Settings) -> str:
    """What the answers to the prompt earned, and this one among them."""
    assert update.sampled is not None
    if s.kind not in REWARDED:
        return ""
    group = scored.rewards[update.sampled.group == update.sampled.group[completion]]
    own, count = float(scored.rewards[completion]), len(group)
    answer = "walk" if update.step_word == "move" and update.sampled.states else "answer"
    if count == 1:
        return f"The {answer} earned {number(own)}."
    right = scored.parts.get(RIGHT)
    if right is not None and set(scored.rewards.tolist()) <= {0.0, 1.0}:
        return f"{count} {answer}s, {int(group.sum())} right; this one is {'right' if own else 'wrong'}."
    if float(np.ptp(group)) < _NOTHING:
        prompt = "from here" if answer == "walk" else "to this prompt"
        return f"All {count} {answer}s {prompt} earned {number(own)}."
    low, high, this = (float(each) for each in (group.min(), group.max(), own))
    shown = plain if plain(low) != plain(high) else number  # as in the list of answers, where the decimals suffice
    return f"{count} {answer}s, rewards {shown(low)} to {shown(high)}; this one earned {shown(this)}."


def _taught(s: Settings, a: float) -> str:
    """The same where a teacher alone decides; `a` is its advantage if it has no term of the loss."""
    if s.only_distils:
        return "Rewards do not count: the policy learns from its teacher alone."
    if abs(a) < _NOTHING:
        return "The teacher gives it the same probability, so nothing pulls (advantage 0)."
    if abs(a) < _SLIGHT:
        return f"The teacher gives it nearly the same probability, so hardly anything pulls (advantage {number(a, 1)})."
    likelier, way = ("likelier", "up") if a > 0 else ("less likely", "down")
    return f"To the teacher it is {likelier}, so the token is pulled {way} (advantage {signed(a).strip()})."


def _judged(update: Update, completion: int, s: Settings, numbers: TokenNumbers) -> str:
    """Whether the token is pulled up or down, and why."""
    assert numbers.advantage is not None
    a, word = numbers.advantage, update.step_word
    way = "up" if a > 0 else "down"
    if s.kind == "action values":
        better = "better" if a > 0 else "worse"
        return f"The move turned out {better} than Q said, so Q goes {way} (TD error {signed(a).strip()})."
    if s.kind == "reward model":
        return "The loss compares the scores of whole answers."
    if s.kind not in REWARDED:
        role = LEFT_OUT if update.scored is None else label(update.scored, completion, s.kind)
        if abs(a) < _NOTHING:
            return "This pair is a tie, so nothing pulls." if role == "tie" else f"The answer is {role}: no pull."
        return f"The answer is {role}, so the {word} is pulled {way} ({signed(a).strip()})."
    alone = s.baseline == "none" and numbers.returned is not None and abs(a - numbers.returned) < _NOTHING
    if abs(a) < _NOTHING:
        return _NO_REWARD if alone else "That is as expected, so nothing pulls (advantage 0)."
    why = "No baseline: the reward itself pulls" if alone else _compared(update, completion, numbers)
    out = _left_out(numbers)
    then = f"yet the loss leaves the {word} out: {out}" if out else f"so the {word} is pulled {way}"
    return f"{why}, {then} (advantage {signed(a).strip()})."


def _left_out(numbers: TokenNumbers) -> str:
    """Why the token's surrogate does not count, whatever its advantage; "" where it does, or where that is unknown."""
    if numbers.left_out:
        return WHY_LEFT_OUT[numbers.left_out]
    return TOO_FAR if numbers.correction == 0 else ""


def _compared(update: Update, completion: int, numbers: TokenNumbers) -> str:
    """What the return is compared with, if that explains the sign of the advantage."""
    better = "Better" if (numbers.advantage or 0.0) > 0 else "Worse"
    if numbers.baseline is None or numbers.returned is None:
        return f"{better} than average"
    if ((numbers.returned - numbers.baseline) > 0) != (better == "Better"):
        return f"{better} than average"
    expected = f"than the expected {plain(numbers.baseline)}"
    rewards = None if update.scored is None else update.scored.rewards
    if rewards is not None and abs(float(rewards[completion]) - numbers.returned) < _SLIGHT:
        return f"{better} {expected}"
    return f"Its return {plain(numbers.returned)} is {better.lower()} {expected}"


def _moved(update: Update, completion: int, facts: AnswerFacts, token: int) -> str:
    """What the whole update did to the token's probability, and whether it went where its own gradient pulled."""
    if facts.new is None or not np.isfinite(facts.new[token]):
        return ""
    old, new = (float(np.exp(each[token])) for each in (facts.sampled.old_logprobs, facts.new))
    change, pull = new - old, facts.value("credit", token) or 0.0
    if abs(change) < _SLIGHT and (min(old, new) <= 0 or max(old, new) < _RATIO * min(old, new)):
        return f"The update hardly moved it: {_percents((old, new))}."
    way = "up" if change > 0 else "down"
    if pull and (pull > 0) != (change > 0):
        because = _elsewhere(update, completion, token, change > 0)
        return f"Yet it went {way}, {_percents((old, new))}{because}."
    return f"It went {way}: {_percents((old, new))}."


def _elsewhere(update: Update, completion: int, token: int, up: bool) -> str:
    """Why a token went against its own pull: in a world, what pulled on the same square, if that is the reason."""
    sampled, credit = update.sampled, LENSES["credit"].values(update)
    if sampled is None or credit is None or update.step_word != "move" or not sampled.states:
        return f": other {update.step_word}s share its weights"
    here, square, move = int(sampled.offsets[completion]) + token, "", int(sampled.token_ids[token])
    pulls = dict[tuple[str, int], float]()
    for row in range(update.completions):
        start, end = int(sampled.offsets[row]), int(sampled.offsets[row + 1])
        prompt = int(sampled.group[row])
        path = [sampled.columns[prompt].get("start") or sampled.prompts[prompt], *sampled.states.get(row, [])]
        for at, state in zip((np.flatnonzero(sampled.mask[start:end]) + start).tolist(), path, strict=False):
            key = state, int(sampled.token_ids[at])
            pulls[key] = pulls.get(key, 0.0) + float(credit[at])
            if at == here:
                square, move = key
    others = sum(pull for (state, made), pull in pulls.items() if state == square and made != move)
    if pulls.get((square, move), 0.0) * (1 if up else -1) > 0:
        return f": on {square}, the same move was pulled {'up' if up else 'down'} more often or harder"
    if others * (1 if up else -1) < 0:
        return f": on {square}, the other moves were pulled {'down' if up else 'up'}"
    return ""


def _percents(shares: Sequence[float]) -> str:
    return " → ".join(map(percent, shares))


def _about(share: float) -> str:
    """A probability in whole percents."""
    return "<1 %" if share < 0.01 else ">99 %" if share >= 0.995 else f"{100 * share:.0f} %"
