"""The settings of the optimizer steps."""

from __future__ import annotations

from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.knobs.objective import TRUST_REGION
from rlplay.algorithms.pair_losses import IMITATIONS, PAIR_LOSSES

_SCORED = tuple(loss.name for loss in PAIR_LOSSES.values() if loss.share is not None)
_OF_LANGUAGE_MODEL = ("loss_type", ("policy_gradient", *_SCORED, *IMITATIONS))

UPDATE: tuple[Knob, ...] = (
    Knob("cg_iterations", "CG iterations", "update", "Iterations of conjugate gradient for the natural gradient.",
         "More: a more accurate direction. Each costs several passes.", 1, 100, 1, needs=TRUST_REGION),
    Knob("cg_damping", "CG damping", "update", "Added to the Fisher matrix's diagonal.",
         "Larger: closer to the plain gradient, and easier to solve for.", 0.0, 100.0, 1.5, True,
         needs=TRUST_REGION),
    Knob("line_search_steps", "Line search", "update", "Number of steps to try, each 0.8 times the one before.",
         "How many shorter steps to try. If none keeps the KL limit and improves the surrogate, the policy does "
         "not move.", 1, 50, 1,
         needs=TRUST_REGION),
    Knob("router_aux_loss_coef", "Router balance", "update",
         "Weight of the loss that keeps the experts of a mixture busy alike; 0: none.",
         "Larger: routers send fewer tokens to favourite experts. Only for mixtures of experts; costs a pass more. TRL "
         "takes the model's own weight if none is given.", 0.0, 10.0, 0.001, needs=_OF_LANGUAGE_MODEL),
    Knob("sync_ref_model", "Reference moves", "update", "Whether the reference follows the policy (TR-DPO).",
         "On: a KL, and the rewards that a loss of pairs implies, are taken to a more recent policy, so the policy may "
         "drift on. Pairs are still sampled from the policy that the stage began with."),
    Knob("ref_model_mixup_alpha", "Reference α", "update", "Share of the policy when the reference moves.",
         "The reference's weights become α times the policy's and 1 − α times their own. 1: it becomes the policy.",
         0.0, 1.0, 0.1, needs=("sync_ref_model", (True,))),
    Knob("ref_model_sync_steps", "Reference steps", "update", "Optimizer steps from one move of it to the next.",
         "Smaller: it stays nearer to the policy, and holds it less.", 1, 1_000_000, 1.5, True,
         needs=("sync_ref_model", (True,))),
    Knob("num_iterations", "Iterations", "update", "Passes over each batch of answers.",
         "More: more learning per sample, but ratios move away from 1 and clipping begins to matter.", 1, 64, 1),
    Knob("num_minibatches", "Minibatches", "update", "Parts of each pass, one optimizer step each.",
         "More: more steps, each noisier.", 1, 64, 1),
    Knob("per_device_train_batch_size", "Answers at once", "update",
         "Answers that one pass takes; 0: as many as its logits allow.",
         "Smaller: less memory, more time; the gradients of the parts add up to that of the minibatch. A change "
         "waits for the next update.", 0, 65536, 1),
    Knob("gradient_checkpointing", "Checkpointing", "update", "Runs each layer again to get its gradient.",
         "On: an optimizer step keeps less in memory and takes longer; its gradients are the same. A change waits "
         "for the next update."),
    Knob("learning_rate", "Learning rate", "update", "Adam's step size; α of Q-learning and SARSA.",
         "Too high: the policy breaks. Too low: nothing happens.", 0.0, 1.0, 1.5, True),
    Knob("lr_scheduler_type", "Schedule", "update", "How the learning rate changes over a stage or the run.",
         "constant: not at all. constant_with_warmup: it rises from 0 in warmup_steps steps. linear and cosine: "
         "after such a rise it falls to 0 at the last planned update, and stays there."),
    Knob("warmup_steps", "Warm-up steps", "update", "Optimizer steps in which the learning rate rises from 0.",
         "Above 0: the rate starts at 0, so the very first step moves nothing. With lr_scheduler_type=constant "
         "there is no such rise.",
         0, 1_000_000, 5),
    Knob("weight_decay", "Weight decay", "update", "Share of a weight that a step of learning rate 1 takes away.",
         "Above 0: every step shrinks the weight matrices, but not biases and norms, by the fraction "
         "learning_rate·weight_decay (AdamW).",
         0.0, 10.0, 0.01),
    Knob("max_grad_norm", "Gradient clip", "update", "Largest norm of the gradient; 0: no limit.",
         "A longer gradient is shortened to it.", 0.0, 1000.0, 0.5),
    Knob("vf_coef", "Value weight", "update", "Weight of the value loss.",
         "Larger: the weights that policy and critic share follow the critic more. TRPO trains only the head.",
         0.0, 10.0, 0.05, needs=("baseline", ("value",))),
    Knob("cliprange_value", "Value clip", "update", "How far a value may move from its prediction at sampling.",
         "Smaller: the critic has less reason to move far in one update.", 0.0, 10.0, 0.05,
         needs=("baseline", ("value",))),
)  # fmt: skip
