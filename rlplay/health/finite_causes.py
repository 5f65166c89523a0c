"""What is said of a number that is not finite, by the stage of an update at which the first one was not."""

from __future__ import annotations

from typing import NamedTuple


class Told(NamedTuple):
    """The texts of a finding; `cause` may name the learning {rate} and the answers that are {empty}."""

    title: str
    cause: str
    change: str
    settings: tuple[str, ...] = ()


TOLD = {
    "reward": Told(
        "A reward is not a number",
        "A reward function gave NaN or infinity, so the mean of its group and every advantage in it is none.",
        "Let the reward function give a finite number, or None where it cannot tell.",
        ("reward_weights",),
    ),
    "sampler": Told(
        "The sampler's log-probabilities are not numbers",
        "The sampler itself computes NaN or log 0: a precision that overflows (fp16, fp8), a kernel, or weights that "
        "arrived broken. Training's own numbers may be finite.",
        "Sample in bfloat16 or float32, and compare one answer's log-probabilities in both programs.",
    ),
    "reference": Told(
        "The KL to the reference is not a number",
        "The reference's log-probabilities are not finite, or so far off that their exponential overflows.",
        "Load the reference in bfloat16 or float32, and look at the KL of the updates before.",
        ("beta",),
    ),
    "start": Told(
        "The model's numbers are not finite from the start",
        "The first forward pass of training overflows before any weight has moved: fp16 with a model made for "
        "bfloat16, a prompt of padding alone, or a checkpoint that is broken.",
        "Train in bfloat16 or float32, and look for empty prompts.",
    ),
    "policy": Told(
        "The weights are not numbers",
        "Log-probabilities are not finite before any step of this update, so the step before it broke the weights: the "
        "{rate} is too large, or numbers overflow in fp16.",
        "Go back to an earlier update and lower learning_rate; train in bfloat16 or float32.",
        ("learning_rate",),
    ),
    "weights": Told(
        "The weights are not numbers",
        "The gradient was finite, the weights after its step are not: the {rate} is too large, or the optimizer's "
        "numbers overflow in fp16.",
        "Go back to an earlier update and lower learning_rate; train in bfloat16 or float32.",
        ("learning_rate",),
    ),
    "advantage": Told(
        "An advantage is not a number",
        "Rewards are finite, their advantages are not: a division by a standard deviation of 0, as a group whose "
        "answers all earn the same has, or of a single answer.",
        "Add a small number to the standard deviation, or set scale_rewards to none.",
        ("scale_rewards", "num_generations"),
    ),
    "ratio": Told(
        "A ratio is not a number",
        "The exponential of a difference of log-probabilities overflows: the answers come from a policy that is far "
        "from the one that learns, or the ratio is that of whole answers.",
        "Bound the ratio before the exponential (delta), and see how far sampling and training disagree.",
        ("delta", "importance_sampling_level"),
    ),
    "empty": Told(
        "The loss is not a number",
        "{empty} answers have no token of the policy, and a mean over 0 tokens is NaN. What the loss is made of is "
        "finite.",
        "Leave out answers without tokens, or divide by at least 1.",
    ),
    "loss": Told(
        "The loss is not a number",
        "What the loss is made of was finite, as far as it is on record: a mean over 0 tokens (empty or masked "
        "answers), or an exponential that overflows in the loss.",
        "Look at the answers of this update: empty ones, or ones that are masked whole.",
    ),
    "gradient": Told(
        "The gradient is not a number",
        "The loss is finite, its gradient is not: the backward pass overflows (fp16 without a scaler), or it goes "
        "through 0 · infinity, such as a square root or a logarithm of 0. A step on it makes every weight NaN.",
        "Train in bfloat16 or float32, leave out steps whose gradient is not finite, and lower learning_rate.",
        ("learning_rate", "max_grad_norm"),
    ),
    "other": Told(
        "A number is not finite",
        "The weights or a reward are not finite any more; usually an earlier step was too long.",
        "Go back to an earlier update and lower learning_rate.",
        ("learning_rate",),
    ),
}
