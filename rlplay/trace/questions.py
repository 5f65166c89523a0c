"""Questions about a run that change nothing, and their answers: plain data, never recorded."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rlplay.trace.moved_weights import LayerReading, MovedWeight
from rlplay.trace.records import Credited, Stepped
from rlplay.trace.rehearsals import Rehearse, Rehearsed
from rlplay.trace.teachers import AnyTeaching, AnyTeachingAnswer, refuse_teaching

Writer = Literal["policy", "reference"]


class Question(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """Base of what the screen asks the engine."""


class Response(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """Base of what the engine answers."""


class Judge(Question, frozen=True):
    """What do the models make of the answers of a pair of `Status.asks`? Answered by `Judged`; changes nothing."""

    pair: int


class WhatIf(Question, frozen=True):
    """What would the changed settings make of the same completions? Answered by `Imagined`; changes nothing."""

    changes: dict[str, Any]


class Reach(Question, frozen=True):
    """How likely would a token be after the newest update, had its answer earned each of these rewards?

    Answered by `Reached` after each reward, until the next command.
    """

    completion: int
    token: int
    rewards: list[float]


class Prefix(msgspec.Struct, frozen=True):
    """A prompt and the tokens that an answer to it begins with.

    `prompt` is what the user says. One of the run's own prompts is found by it, and comes with its columns and system
    message; with other `columns`, or none of the run's, it stands alone and goes through the chat template unless
    `plain`. `text` is what follows `answer` where only its words are known; the tokenizer spells it.
    """

    prompt: str
    answer: list[int] = []
    columns: dict[str, Any] | None = None
    plain: bool = False
    text: str = ""


class Peek(Question, frozen=True):
    """What could come next? Answered by `Peeked`, the last of several in a row. Probing is never recorded."""

    prefix: Prefix
    temperature: float | None = None  # None: the run's


class Continue(Question, frozen=True):
    """Go on from a prefix `count` times; `draw` counts further requests, which get other random numbers.

    Answered by `Continued`. The `writer`s policy and reference get the same random numbers. `greedy`: the likeliest
    token each time, once.
    """

    prefix: Prefix
    writer: Writer = "policy"
    count: int = 1
    greedy: bool = False
    draw: int = 0


class Estimate(Question, frozen=True):
    """What is a prefix worth? Answered by `Estimated` again and again until `count` samples, or the next command."""

    prefix: Prefix
    writer: Writer = "policy"
    count: int = 256


class Recall(Question, frozen=True):
    """How likely were these tokens after a prefix in the course of the run?

    Answered by `Recalled` again and again, from the first update `since` on whose weights are kept to the last, or
    until the next command.
    """

    prefix: Prefix
    token_ids: list[int]
    since: int = 0


class Weigh(Question, frozen=True):
    """What did an update move in the weights? Answered by `Weighed` as often as more is known, at last `done`."""

    update: int


class ReadLayers(Question, frozen=True):
    """What would the model say after each of its layers, before and after an update? Answered by `LayersRead`.

    `token_id` is the token that was written after the prefix.
    """

    prefix: Prefix
    token_id: int
    update: int


class Neighbours(Question, frozen=True):
    """Which tokens have embeddings like that of a token, before and after an update? Answered by `NeighboursFound`."""

    token_id: int
    update: int


class TryCode(Question, frozen=True):
    """Are these lines right? `code` is what the user has typed for a writing exercise; nobody else's reaches here.

    Answered by `Tried`, with the same `number`; changes nothing.
    """

    exercise: str
    code: str
    number: int = 0


class Judged(Response, frozen=True):
    """The answer to a `Judge`: how much of what each of the two answers of a pair has; never recorded."""

    pair: int
    update: int = 0
    refused: str = ""  # why it cannot be told, in one line; then the rest is empty
    scores: dict[str, tuple[float, float]] = {}  # first and second answer, by what the number is


class Imagined(Response, frozen=True):
    """The answer to a `WhatIf`; never recorded.

    `before` and `after` are what optimizer steps would record, one for each minibatch of a pass over all completions,
    by the log-probabilities of each completion's last step: by the settings as they were, and as they would be.
    """

    changes: dict[str, Any]
    update: int = 0
    refused: str = ""  # why it cannot be told, in one line; then the rest is empty
    settings: dict[str, Any] = {}  # all that it is told by
    held: list[str] = []  # settings whose change shows only with new samples or steps, and was left out
    credited: Credited | None = None  # as it would be; the candidates' probabilities, which stay, are left out
    before: list[Stepped] = []
    after: list[Stepped] = []
    losses: tuple[float, float] | None = None  # before and after: mean over the steps, no entropy bonus, no value loss


class Reached(Response, frozen=True):
    """The answer to a `Reach`: the token's probability after `update` for each of `rewards`, all else as it was."""

    completion: int
    token: int
    update: int = 0
    refused: str = ""
    rewards: list[float] = []
    probabilities: list[float] = []
    reward: float = 0.0  # that the answer earned
    old: float = 0.0  # the probability that the token was sampled with
    done: bool = False  # no further answer follows, because all is measured or another command came


class Peeked(Response, frozen=True):
    """The answer to a `Peek`: the next-token distributions of policy and frozen reference after `update` updates.

    Probabilities are those at `temperature`, entropies and `kl` (policy ‖ reference) of this one position, in nats.
    """

    prefix: Prefix
    update: int = 0
    steps: int = 0  # optimizer steps of the next update that have been made already
    refused: str = ""  # why there is no answer, in one line; then the rest is empty
    unrewarded: str = ""  # why an answer to this prompt earns no reward; empty if it does
    temperature: float = 1.0
    prompt_ids: list[int] = []  # the template's included
    answer_ids: list[int] = []
    prompt_texts: list[str] = []  # one string per token of the prompt
    texts: list[str] = []  # of the answer's tokens
    pieces: dict[int, str] = {}  # text of every id below and in the answer, alone
    probabilities: list[float] = []  # of the answer's own tokens, each after those before it
    top_ids: list[int] = []  # candidates: the likeliest under either, in the order of the policy
    top: list[float] = []
    ref_top: list[float] = []
    entropy: float = 0.0
    ref_entropy: float = 0.0
    kl: float = 0.0
    ended: bool = False  # the last token ends the answer: nothing comes next


class Tail(msgspec.Struct, frozen=True):
    """How an answer goes on after a prefix."""

    token_ids: list[int]
    texts: list[str]  # joined they are the text
    truncated: bool  # ran into the longest length
    reward: float | None  # of the whole answer; None if it earns none


class Continued(Response, frozen=True):
    """The answer to a `Continue`. Interrupted, it has no tails."""

    prefix: Prefix
    writer: Writer = "policy"
    greedy: bool = False
    refused: str = ""
    tails: list[Tail] = []
    pieces: dict[int, str] = {}


class Estimated(Response, frozen=True):
    """The answer to an `Estimate`: the mean reward of `count` answers that go on from the prefix.

    `interval` names what `low` and `high` are (95 %); empty if there is none yet.
    """

    prefix: Prefix
    writer: Writer = "policy"
    update: int = 0
    refused: str = ""
    count: int = 0
    unscored: int = 0  # sampled beside those, and no reward function answered
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    interval: Literal["", "Wilson", "Student t"] = ""
    done: bool = False


class Recalled(Response, frozen=True):
    """The answer to a `Recall`: probabilities of `token_ids` under the policy as it was after each of `updates`."""

    prefix: Prefix
    token_ids: list[int] = []
    refused: str = ""
    updates: list[int] = []
    probabilities: list[list[float]] = []  # a row for each update, at the run's temperature
    done: bool = False


class Weighed(Response, frozen=True):
    """The answer to a `Weigh`: what changed between the ends of two updates, `since` and `update`.

    Refused, but not `done`: something else was asked meanwhile.
    """

    update: int
    since: int = 0
    refused: str = ""
    model: Literal["policy", "reward model"] = "policy"
    layers: int = 0
    weights: list[MovedWeight] = []  # in the order of the model
    frozen: int = 0  # numbers that are not trained
    tied: bool = False  # whether the head is the embedding
    adapters: int = 0  # rank of LoRA's adapters; 0: none
    squares: dict[str, list[float]] = {}  # of a table: how far each move's number moved, by what it was seen in
    moves: list[str] = []  # of a table
    done: bool = False


class LayersRead(Response, frozen=True):
    """The answer to a `ReadLayers`: a reading before the first layer and after each, the last is the model's own."""

    prefix: Prefix
    token_id: int
    update: int
    since: int = 0
    refused: str = ""
    before: list[LayerReading] = []
    after: list[LayerReading] = []
    pieces: dict[int, str] = {}


class NeighboursFound(Response, frozen=True):
    """The answer to a `Neighbours`: the tokens nearest by the cosine of embeddings after the update, nearest first."""

    token_id: int
    update: int
    since: int = 0
    refused: str = ""
    ids: list[int] = []
    before: list[float] = []  # cosines
    after: list[float] = []
    turned: float = 1.0  # cosine of the token's own embedding before and after
    trained: bool = True  # whether the embedding is
    digits: list[float] = []  # cosines with 0 to 9 after the update, if each of them is a token
    pieces: dict[int, str] = {}


class BothNumbers(msgspec.Struct, frozen=True):
    """A number of a learner's beside the engine's, and the token they belong to, if one shows them."""

    label: str
    completion: int | None
    token: int
    yours: float
    engine: float
    made_up: bool = False  # the batch agrees; this is a case made up for what the batch does not show


class Tried(Response, frozen=True):
    """The answer to a `TryCode`: `passed` if all `compared` numbers agree, and those made up for the exercise."""

    exercise: str
    number: int = 0
    refused: str = ""  # why nothing can be compared now, in one line; then the rest is empty
    error: str = ""  # what stopped the lines, in one line, and at which line (from 1; 0: none)
    line: int = 0
    compared: int = 0
    unit: str = ""  # what is compared, in the plural
    passed: bool = False
    first: BothNumbers | None = None  # the first that differ
    rows: list[BothNumbers] = []  # some, from shortly before the first that differ
    remark: str = ""  # which mistake makes such numbers; empty if it is none of the typical ones
    printed: str = ""  # what the lines have printed, the beginning


AnyProbe = Peek | Continue | Estimate | Recall
AnyProbed = Peeked | Continued | Estimated | Recalled
AnyWeights = Weigh | ReadLayers | Neighbours
AnyWeighed = Weighed | LayersRead | NeighboursFound
AnyQuestion = AnyProbe | AnyWeights | Judge | WhatIf | TryCode | Reach | AnyTeaching | Rehearse
AnyAnswer = AnyProbed | AnyWeighed | Judged | Imagined | Tried | Reached | AnyTeachingAnswer | Rehearsed


def refusal(question: AnyQuestion, reason: str) -> AnyAnswer:  # noqa: PLR0911, PLR0912 - one for each question
    """The answer to a question that cannot be answered; `reason` is one line."""
    match question:
        case Weigh():
            return Weighed(question.update, refused=reason, done=True)
        case ReadLayers():
            return LayersRead(question.prefix, question.token_id, question.update, refused=reason)
        case Neighbours():
            return NeighboursFound(question.token_id, question.update, refused=reason)
        case Reach():
            return Reached(question.completion, question.token, refused=reason, done=True)
        case WhatIf():
            return Imagined(question.changes, refused=reason)
        case Judge():
            return Judged(question.pair, refused=reason)
        case TryCode():
            return Tried(question.exercise, question.number, refused=reason)
        case Peek():
            return Peeked(question.prefix, refused=reason)
        case Continue():
            return Continued(question.prefix, refused=reason)
        case Estimate():
            return Estimated(question.prefix, refused=reason)
        case Recall():
            return Recalled(question.prefix, refused=reason)
        case Rehearse():
            return Rehearsed(question.number, len(question.changes), refused=reason, done=True)
        case _:
            return refuse_teaching(question, reason)
