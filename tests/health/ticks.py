"""By subject of a check: evidence that earns a ✓, and evidence that must not, because the trouble would not show."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import nan

from rlplay.health.counts import WinCount
from rlplay.health.finding import Evidence
from rlplay.health.paid_numbers import TwiceNumbers
from rlplay.health.part_numbers import PartNumbers
from rlplay.health.reference_numbers import ReferenceGap
from rlplay.health.sampler_numbers import Surprise
from rlplay.health.trained_tokens import TrainedTokens
from rlplay.health.turn_numbers import TurnNumbers
from rlplay.trace.clock import FIRST, LAST
from tests.health.evidence import curves, evidence
from tests.health.given_ticks import GIVEN_NOT_TICKED, GIVEN_TICKED

FOREIGN = "Test 1.0"
RISING = [0.1 * n for n in range(1, 31)]
NOISY = [0.5 + (-1) ** n * 0.1 for n in range(40)]
MOVED = {"weights/changed": [0.9] * 6, "weights/step": [1e-4] * 6}
PARTS = PartNumbers(("right", "brief"), 16, ((3.0, 0.0), (0.0, 1.0)), (0.0, 0.0), (1.0, 1.0), (2, 2))
UNSTATED = {"on_record": {"loss_type", "algorithm"}}


def gold(won: float, pairs: int, name: str = "answer") -> Evidence:
    return evidence(1, gold={name: WinCount(won, pairs)})


def longer(won: float, pairs: int, **fields: object) -> Evidence:
    return evidence(1, longer={"tokens": WinCount(won, pairs), "characters": WinCount()}, **fields)


CONTINUED = TurnNumbers(2)
COVERED = TrainedTokens(5, 0, None, Surprise(), None, Counter({1: 16}), 0)
NOTHING = TrainedTokens(0, 0, None, Surprise(), None, Counter(), 0)

TICKED: dict[str, list[tuple[Evidence, str]]] = {
    **GIVEN_TICKED,
    "Numbers": [(evidence(series={"loss": [0.1] * 6}), "none of the 1 metrics of update 6 is NaN or inf")],
    "Template": [
        (evidence(), "4 different prompts have different tokens; all 12 marks in them are single tokens; 16 of 16"),
    ],
    "Sampler": [(evidence(), "a KL of 1e-9 nats per token between sampling")],
    "Reference": [
        (evidence(reference=ReferenceGap(2e-4, False, 0)), "KL 0.0002 nats per token before the first step"),
    ],
    "End of answers": [
        (evidence(), "all of the last 48 answers ended"),
        (evidence(cut=3), "39 of the last 48 answers ended before the max length"),
        (curves(3, {"completions/clipped_ratio": [0.1, 0.2, 0.0]}), "10.0 % of the answers of the last 3 updates were"),
        (evidence(ends_known=False, series={"completions/clipped_ratio": [0.1] * 6}), "10.0 % of the answers"),
    ],
    "Temperature": [
        (evidence(series={"entropy": [2.0, 0.0]}), "at 1 each token is as open as a draw from 2.7 equ"),
        (evidence(series={"entropy": [0.5] * 6}, source=FOREIGN, surprise=Surprise(4000, 2000.0, 2000.0, 3000.0)),
         "at 1 each token is as open as a draw from 1.6 equ"),
    ],
    "Differences in reward": [
        (evidence(reward=[None, 0.5, None, 0.5, 0.5, 0.5]), "answers earned differently in 2 of 6 updates, 96 answers"),
        (curves(5, {"reward_std": [0.1, 0.0, 0.3, 0.2, 0.1]}), "the standard deviation of the rewards was 0 to 0.3 in"),
    ],
    "Learning rate": [
        (curves(6, {"learning_rate": [0.0, *[1e-6] * 5], "reward": RISING[:6]}), "0 to 1e-6 in 6 updates, with which"),
        (evidence(1, {"learning_rate": [1e-6]}), "1e-6 in 1 update; one moves up to 5.0 % of the probability"),
        (evidence(series=MOVED | {"learning_rate": [1e-6] * 6}),
         "1e-6 in 6 updates; one moves the weights by up to 0.0001 of their norm"),
    ],
    "Weights": [
        (evidence(series=MOVED), "update 6 changed 90.0 % of the weights that were looked at; the median"),
        (evidence(series={"grad_norm": [1.0, 2.0] * 3, "reward_std": [0.1] * 6}), "gradient norm 1 to 2 in 6 updates"),
        (curves(6, {"grad_norm": [1.0, 2.0] * 3, "reward_std": [0.1] * 6, "reward": RISING[:6]}),
         "gradient norm 1 to 2 in 6 updates, and it learns"),
        (curves(6, {"grad_norm": [1.0, 2.0] * 3, "loss": RISING[6:0:-1]}, "TRL 1.16.0 SFTTrainer"),
         "gradient norm 1 to 2 in 6 updates, and it learns"),
    ],
    "Turns": [(evidence(turns=CONTINUED), "12 prompts begin with an earlier prompt")],
    "Tokens of others": [(evidence(trained=COVERED), "none of 30 tokens that an environment wrote")],
    "End token": [(evidence(trained=COVERED, ends={1: "<end>"}), "100.0 % of 96 answers have their end")],
    "Reward kept": [
        (curves(20, {"reward": RISING[:20]}), "at its best 1.8 over 5 updates, now 1.8"),
    ],
    "Gradient": [
        (curves(12, {"grad_norm": [1.0, 2.0, 1.5] * 4}), "the largest of the last 12 updates is 1.33 times"),
    ],
    "Reward parts": [
        (evidence(parts=PARTS), "of the variance within groups, in 96 answers: right 75.0 %, brief 25.0 %"),
    ],
    "Right answers": [
        (gold(17, 20), "right answers earned more in 85.0 % of 20 pairs"),
        (gold(20, 20), "right answers earned more in all 20 pairs"),
    ],
    "Equal answers": [(evidence(twice=TwiceNumbers(6, 0, -1, 0.0, 0.0, 0, 0)), "36 of 36 answers that stand")],
    "Step size": [
        (evidence(shift=[0.01, 0.02, 0.03, 0.04, 0.05, 0.06]), "each of the last 6 updates moved 1.0 % to 6.0 % of"),
        (curves(5, {"kl_old": [1e-3, 2e-3, 1e-3, 1e-3, 1e-3]}), "the KL of an update was at most 0.002 nats per token"),
    ],
    "Length": [(longer(50, 100), "the longer answer earned more in 50.0 % of 100 pairs")],
    "Gold score": [
        (evidence(30, {"reward": RISING, "gold/a/mean": RISING}), "from 1.3 to 2.8 in 20 updates, while the reward ro"),
    ],
    "Repetition": [(evidence(repeats=0.02), "2.0 % of the four-token sequences of the last 48 answers repeat")],
    "Prompts": [
        (evidence(prompt_texts=[frozenset({n, n + 100}) for n in range(6)]), "12 different prompts in 24 groups"),
    ],
    "Held-out reward": [(evidence(series={"eval_reward": [0.1, 0.2, 0.3]}), "from 0.1 at update 1 to 0.3 at 3")],
    "Clipped tokens": [
        (curves(5, {"clip_ratio/region_mean": [0.0, 0.1, 0.2, 0.1, 0.0]}), "at most 20.0 % of the tokens of the last"),
    ],
    "Entropy": [
        (evidence(series={"entropy": [2.0, 1.5, 1.0, 1.0, 1.0]}), "from 2 at update 1 to 1 nats at 5"),
        (evidence(series={"entropy": [2.0, 1.5, 1.0, 1.0, 0.1], "reward": RISING[:6]}), "from 2 at update 1 to 0.1"),
    ],
    "KL to the reference": [
        (evidence(series={"kl": [0.0, 0.2]}), "at most 0.2 nats per token in the last 2 updates (from 1 on is far)"),
        (evidence(1, series={"kl": [0.0]}), "0 nats per token in update 1 (from 1 on is far)"),
    ],
    "Critic": [(evidence(8, {"explained_variance": [0.3] * 8}), "explained variance 0.3, the best of the last 5")],
    "Signal": [
        (evidence(series={"frac_reward_zero_std": [0.3] * 6}), "70.0 % of the groups of the last 5 updates have ans"),
        (evidence(series={"reward": [0.1, *[0.95] * 5]}), "at its ceiling: "),
        (evidence(series={"frac_reward_zero_std": [0.9] * 6, "reward": [0.4, *[0.89] * 5]}), "most prompts are solved"),
        (evidence(series={"reward_std": [0.1] * 6}, settings={"baseline": "none"}), "rewards differed in each of"),
        (curves(16, {"frac_reward_zero_std": [0.5] * 16}), "50.0 % of the groups of the last 16 updates"),
    ],
    "Reward over 20 updates": [
        (evidence(20, {"reward": RISING}, best=9.0), "+0.1 ± "),
        (evidence(series={"reward": [0.1, 0.95, 0.95, 0.95]}), "at its ceiling: 0.95 on average"),
        (curves(20, {"reward": RISING}), "+0.1 ± "),
    ],
}  # fmt: skip

NOT_TICKED: dict[str, dict[str, Evidence]] = {
    **GIVEN_NOT_TICKED,
    "Numbers": {
        "the update goes on": evidence(finished=False),
        "the loss is missing that was there before": curves(3, {"loss": [0.1, 0.1], "reward": [0.0, 0.0, 0.0]}),
    },
    "Template": {
        "no prompts on record": evidence(prompts_known=False, source=FOREIGN),
        "only words on record": evidence(tokens=False),
        "two prompts that the model cannot tell apart": evidence(prompts_alike=(8, 2)),
        "no mark in the prompts": evidence(template_marks=0),
        "numbers alone": curves(9, {"reward": NOISY}, FOREIGN),
    },
    "Sampler": {
        "no log-probabilities": evidence(mismatch=None),
        "numbers alone": curves(9, {"reward": NOISY}, FOREIGN),
    },
    "Reference": {
        "far from the start": evidence(reference=ReferenceGap(0.1, False, 0)), "none": evidence(),
        "goes on from a checkpoint": evidence(
            series={FIRST: [9.0] * 6, LAST: [9.0] * 6}, reference=ReferenceGap(0.0, True, 0)
        ),
        "only means were logged": curves(3, {"kl": [0.0, 0.1, 0.2]}),
    },
    "End of answers": {
        "nothing says which were cut": evidence(ends_known=False),
        "few answers": evidence(1),
        "few updates": curves(2, {"completions/clipped_ratio": [0.1, 0.1]}),
    },
    "Temperature": {
        "no temperature on record": evidence(series={"entropy": [2.0] * 6}, **UNSTATED),
        "an entropy alone": curves(6, {"entropy": [0.5] * 6}, FOREIGN),
        "a temperature that another program may not have used": evidence(series={"entropy": [2.0]}, source=FOREIGN),
        "no entropy": evidence(),
    },
    "Differences in reward": {
        "few answers": evidence(1, reward=None), "one update": curves(1, {"reward_std": [0.1]}),
        "no reward": evidence(scored=False, source=FOREIGN),
        "two of unknown size": curves(2, {"reward_std": [0.1] * 2}),
        "all equal": curves(6, {"reward_std": [0.0] * 6, "reward": [0.1, *[0.2] * 5]}),
    },
    "Learning rate": {
        "nothing shows that it is enough": curves(30, {"learning_rate": [0.04] * 30, "reward": NOISY[:30]}),
        "warming up": curves(2, {"learning_rate": [0.0, 0.0]}), "none logged": curves(2, {"reward": [0.0, 0.0]}),
    },
    "Turns": {"no prompt goes on": evidence(turns=TurnNumbers()), "none": evidence()},
    "Tokens of others": {"no tokens of others": evidence(trained=NOTHING), "none": evidence()},
    "End token": {
        "few answers": evidence(1, trained=COVERED, ends={1: "<end>"}), "no end known": evidence(trained=COVERED),
        "no answer ends": evidence(trained=NOTHING, ends={1: "<end>"}), "none": evidence(),
    },
    "Reward kept": {
        "few updates": curves(19, {"reward": RISING[:19]}), "none": evidence(),
        "nothing gained": curves(30, {"reward": NOISY[:30]}),
        "half of it is gone": curves(45, {"reward": [*RISING, *RISING[:14:-1]]}),
    },
    "Gradient": {
        "few updates": curves(11, {"grad_norm": [1.0] * 11}),
        "norms of 0": curves(30, {"grad_norm": [0.0] * 19 + [1.0] * 11}), "none": evidence(),
    },
    "Weights": {
        "hardly any change": evidence(series=MOVED | {"weights/changed": [0.01] * 6}),
        "they change by next to nothing": evidence(series=MOVED | {"weights/step": [1e-6] * 6}),
        "few updates": curves(2, {"grad_norm": [1.0] * 2}, "TRL 1.16.0 SFTTrainer"),
        "a gradient of 0 among them": curves(4, {"grad_norm": [1.0, 1.0, 0.0, 1.0]}, "TRL 1.16.0 SFTTrainer"),
        "nothing says that they move": curves(6, {"grad_norm": [1.0, 2.0] * 3, "reward_std": [0.1] * 6}),
        "nothing says what there was to learn": curves(4, {"grad_norm": [1.0] * 4}), "none": evidence(),
    },
    "Reward parts": {
        "one part": evidence(parts=replace(PARTS, names=("right",), products=((3.0,),))), "none": evidence(),
        "few answers": evidence(1, parts=PARTS),
        "a part that never differs": evidence(parts=replace(PARTS, products=((3.0, 0.0), (0.0, 0.0)))),
        "a part that decides alone": evidence(parts=replace(PARTS, products=((99.0, 0.0), (0.0, 1.0)))),
    },
    "Right answers": {
        "few pairs": gold(19, 19), "another column": gold(100, 100, "row"),
        "another part decides": gold(61, 100), "nothing on record": curves(9, {"reward": NOISY}, FOREIGN),
    },
    "Equal answers": {
        "none twice": evidence(twice=TwiceNumbers(0, 0, -1, 0.0, 0.0, 0, 0)), "few": evidence(
            twice=TwiceNumbers(5, 0, -1, 0.0, 0.0, 0, 0)), "an episode": evidence(twice=None),
    },
    "Step size": {
        "a single update": evidence(1, shift=0.05), "nothing measured after the step": evidence(shift=None),
        "not moved": evidence(shift=0.0), "hardly moved": evidence(shift=1e-4),
        "moved far": evidence(shift=0.3), "moved far, by its KL": curves(5, {"kl_old": [0.3] * 5}),
    },
    "Length": {
        "both rise, and no answer is on record": curves(30, {"reward": RISING, "completions/mean_length": RISING}),
        "numbers of few updates": curves(3, {"completions/mean_length": [5.0, 6.0, 7.0]}),
        "few pairs": longer(50, 99), "moves, which a task counts": longer(50, 100, walks=True),
        "right answers are longer": evidence(1, longer={"tokens": WinCount(99, 100), "characters": WinCount()},
                                             gold={"answer": WinCount(100, 100)}),
    },
    "Gold score": {
        "none": evidence(30, {"reward": RISING}),
        "the reward stays": evidence(30, {"reward": NOISY, "gold/a/mean": RISING}),
        "a fall that may be chance": evidence(
            30, {"reward": RISING, "gold/a/mean": [0.37, 0.1, 0.3, 0.05] * 6 + [0.36, 0.04] * 3}
        ),
        "it stays while the reward rises": evidence(30, {"reward": RISING, "gold/a/mean": [0.36, 0.37] * 15}),
        "one of two falls": evidence(
            30, {"reward": RISING, "gold/a/mean": RISING, "gold/b/mean": [3 - 0.01 * x for x in RISING]}
        ),
        "a gold score that is missing of late": evidence(30, {"reward": RISING, "gold/a/mean": [0.1, nan]}),
    },
    "Repetition": {
        "answers of a few tokens": evidence(long_answers=0), "mostly short answers": evidence(long_answers=7),
        "numbers alone": curves(9, {"reward": NOISY}, FOREIGN),
    },
    "Prompts": {
        "few groups": evidence(2, prompt_texts=frozenset(range(8))), "none": evidence(prompt_texts=frozenset()),
        "always the same few": evidence(prompt_texts=frozenset(range(11))),
    },
    "Held-out reward": {
        "one evaluation": evidence(series={"eval_reward": [0.1]}), "none": evidence(),
        "no number": evidence(series={"eval_reward": [0.1, nan]}),
    },
    "Clipped tokens": {
        "one step per batch": evidence(series={"clip_ratio/region_mean": [0.0] * 6}, settings={"num_minibatches": 1}),
        "nothing ever clipped, for a reason unknown": curves(9, {"clip_ratio/region_mean": [0.0] * 9}),
        "few updates": curves(4, {"clip_ratio/region_mean": [0.1] * 4}),
    },
    "Entropy": {
        "few updates": evidence(series={"entropy": [2.0, 1.5, 1.0, 1.0]}),
        "at the bottom when it began": evidence(series={"entropy": [0.004] * 6}),
        "fallen, with no gain": evidence(3, {"entropy": [2.0, 1.0, 0.1], "reward": [0.5] * 3}),
        "halved, with no gain": evidence(series={"entropy": [2.0, 1.5, 1.0, 1.0, 0.9], "reward": [0.5] * 6}),
    },
    "KL to the reference": {
        "none": evidence(), "large before anything was learned": evidence(series={"kl": [0.648, 0.7, 0.7]}),
        "far, while the reward rises": evidence(series={"kl": [0.0, 1.0, 2.0], "reward": RISING[:6]}),
        "none is computed": curves(5, {"kl": [0.0] * 5}), "nor in the first update": curves(1, {"kl": [0.0]}),
        "nothing has moved": evidence(series={"kl": [0.0] * 6}),
    },
    "Critic": {
        "none": evidence(), "no better than a constant": evidence(9, {"explained_variance": [0.0] * 9}),
        "few updates": evidence(series={"explained_variance": [0.3] * 6}),
    },
    "Signal": {
        "most groups are equal": evidence(series={"frac_reward_zero_std": [0.9] * 6}), "none logged": evidence(),
        "few groups": evidence(series={"frac_reward_zero_std": [0.3] * 6}, groups=1),
        "few groups, for all that is known": curves(6, {"frac_reward_zero_std": [0.3] * 6}),
        "one update without differences": evidence(
            series={"reward_std": [0.1, 0.1, 0.1, 0.0, 0.1, 0.1]}, settings={"baseline": "none"}
        ),
    },
    "Reward over 20 updates": {
        "few updates": evidence(19, {"reward": RISING[:19]}, best=9.0),
        "neither rises nor falls": evidence(20, {"reward": NOISY[:20]}, best=9.0),
        "falls": curves(20, {"reward": RISING[19::-1]}),
        "risen before, to what may be no ceiling": curves(30, {"reward": [0.1, 0.2, 0.1, *[0.5, 0.52, 0.48] * 9]}),
    },
}  # fmt: skip
