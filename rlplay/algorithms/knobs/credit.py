"""The settings of rewards and credit."""

from __future__ import annotations

from rlplay.algorithms.baselines import BASELINES
from rlplay.algorithms.choice import describe_choices
from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.returns import RETURNS
from rlplay.algorithms.scales import SCALES
from rlplay.algorithms.settings import HEAVIEST

CREDIT: tuple[Knob, ...] = (
    Knob("reward_weights", "Reward weights", "credit", "Weight of each reward function in the sum.",
         "Only rewards with a nonzero weight count; one of weight 0 is tracked as a gold score, and a gold score "
         "counts if it is named. Empty: every reward has the weight 1. Pairs without a gold score are labelled by "
         "the sum."),
    Knob("squares", "Painted squares", "credit", "Squares of a map or arms of a bandit, changed in the run.",
         "A number is the reward for entering the square. G, O, #, I and . make it a goal, a hole, a wall, ice or "
         "floor: {d4: ., a4: G} moves the goal. An arm takes a number, as in {a: 1}."),
    Knob("reward_stream", "Reward stream", "credit", "Where in the answer reward arrives.",
         "outcome: all on the last token. process: each step's score at its end. process_normalized: the same, "
         "normalised in the group. shaping: the change in score from step to step, with the score as the "
         "potential. Without step scores, process and shaping are the same as outcome."),
    Knob("multi_objective_aggregation", "Combining rewards", "credit", "How several rewards become one.",
         "sum_then_normalize: added up first. normalize_then_sum: each is normalised in its group first, so that "
         "none drowns the others (GDPO)."),
    Knob("overlong_buffer", "Overlong buffer", "credit", "Tokens before the limit with a length penalty; 0: none.",
         "Answers near the limit lose up to 1, so that the penalty sets in before the cut (DAPO).", 0, 8192, 4),
    Knob("reward_clip_min", "Reward, least", "credit", "Smallest reward of an answer; empty: no bound.",
         "Lower rewards count as this one, before any KL is subtracted.", -HEAVIEST, HEAVIEST, 0.1),
    Knob("reward_clip_max", "Reward, most", "credit", "Largest reward of an answer; empty: no bound.",
         "Higher rewards count as this one, before any KL is subtracted.", -HEAVIEST, HEAVIEST, 0.1),
    Knob("pass_at_k", "Pass@k", "credit", "Answers of a group of which the best one counts; 1: each for itself.",
         "Above 1: an answer is paid the mean reward of the best of k answers that include it. A wrong answer beside "
         "right ones is paid too, and prompts that are mostly solved teach less.", 1, 1024, 1),
    Knob("returns", "Return", "credit", "How rewards become a return for each token.",
         describe_choices(RETURNS)),
    Knob("baseline", "Baseline", "credit", "What a return is compared with.",
         describe_choices(BASELINES)),
    Knob("scale_rewards", "Scale", "credit", "What advantages are divided by.",
         describe_choices(SCALES)),
    Knob("gamma", "Discount γ", "credit", "How much a reward is worth if it comes one token later.",
         "The further below 1, the less the early tokens of a long answer get of a reward at its end.",
         0.0, 1.0, 0.01),
    Knob("lam", "GAE λ", "credit", "0 relies on the value head, 1 on the rewards that followed.",
         "Lower: less noise, more bias.", 0.0, 1.0, 0.05, needs=("returns", ("gae",))),
    Knob("vine_samples", "Vine samples", "credit", "Answers sampled from the start of each step or turn.",
         "More: more accurate values, but sampling them can take most of an update's time. A step is a line or a "
         "sentence; with an environment, a turn.", 1, 256, 1,
         needs=("returns", ("vine",))),
)  # fmt: skip
