"""What keeps an update from going too far: ratio, clipping, KL, and the two policies it is measured to."""

from __future__ import annotations

from rlplay.scenario.glossary.term import Term

BOUNDS = (
    Term("Old policy",
         "The policy that sampled the answers on the screen: the behaviour policy. Within an update it stays as it "
         "was while the new one moves.",
         aliases=("behaviour policy", "behavior policy", "sampling policy"), see=("panel", "token")),
    Term("New policy",
         "The policy as the update leaves it: the target of learning. Beside it the token panel shows the old one and "
         "the reference.",
         aliases=("target policy", "current policy"), see=("lens", "prob_delta")),
    Term("Reference",
         "A frozen copy of the policy from the start of the run or of its stage. It is never trained; how far the "
         "policy has moved is measured against it.",
         aliases=("reference model", "ref", "frozen model", "SFT model"), see=("lens", "log_ratio")),
    Term("On-policy",
         "Learning from answers that the very same weights have just written. The first optimizer step of every update "
         "is on-policy, so all its ratios are 1.",
         aliases=("on policy",), see=("lens", "importance_ratio")),
    Term("Off-policy",
         "Learning from answers of other weights: an earlier version, another model, a person. The ratio corrects for "
         "it, but the further apart the two are, the more a few large ratios decide.",
         aliases=("off policy", "stale", "importance sampling"), see=("knobs", "num_iterations")),
    Term("Ratio",
         "How many times as likely a token is now as when it was sampled. It is a quotient of probabilities and so "
         "always above 0; what can be below 0 is the advantage.",
         "w = π_new/π_old", ("importance ratio", "probability ratio", "importance weight"),
         ("lens", "importance_ratio")),
    Term("Clipping",
         "Once w has left the band 1 ± ε in the direction that A pushes, the token no longer pulls: the "
         "surrogate's gradient is 0 there. That takes away the reason to go on; it limits neither the ratio nor the "
         "KL, for other tokens still move the same weights. With one step per batch it never happens.",
         "min(w·A, clip(w, 1 − ε, 1 + ε)·A)", ("clip", "epsilon", "ε", "clipped"), ("lens", "clip_state")),
    Term("Clip fraction",
         "The share of tokens whose gradient clipping made 0: A > 0 above the band, or A < 0 below it. The share that "
         "is outside the band on either side is larger, and another number.",
         aliases=("clipfrac", "clip ratio"), see=("curve", "clip_ratio/region_mean")),
    Term("Surrogate",
         "What an update maximises in place of the expected reward, which it cannot see: ratio times advantage on the "
         "answers at hand, bounded in one way or another. It is a good stand-in only near the old policy.",
         aliases=("surrogate objective",), see=("knobs", "surrogate")),
    Term("KL divergence",
         "How far apart two policies are: by how many nats, on average for each token, what one of them writes is "
         "likelier under itself than under the other. At 0 they agree on every token; at 1 a token is about 2.7 times "
         "as likely under one as under the other.",
         "KL(p‖q) = Σ p·log(p/q)", ("KL", "Kullback–Leibler", "relative entropy"),
         ("curve", "kl")),
    Term("KL to reference",
         "From the frozen model that the run began with, so the whole way so far. β holds it back.",
         aliases=("KL penalty", "drift"), see=("lens", "ref_kl"), play="flattery"),
    Term("KL to old policy",
         "From the policy that sampled these answers, so the way of one update. This is what TRPO limits; it is not "
         "the KL to the reference.",
         aliases=("approx_kl", "KL old to new"), see=("curve", "kl_old")),
    Term("KL estimators",
         "Nobody can add up all possible texts, so KL is estimated from the sampled tokens, each with r = p_ref/p, the "
         "reference's probability over the policy's. k1 is right on average, but noisy: single tokens, even whole "
         "curves, can be below 0. k2 is never below 0 and quiet, but a little off; the less so, the nearer the "
         "policies. k3 is never below 0 and right on average. (Schulman 2020, “Approximating KL Divergence”.)",
         "k1 = −log r\nk2 = ½·(log r)²\nk3 = r − 1 − log r", ("k1", "k2", "k3", "estimator"),
         ("knobs", "kl_estimator")),
    Term("KL weight β",
         "What a nat of KL to the reference costs. At 0 nothing holds the policy back from drifting, or cheating; "
         "a high β keeps it close, and it learns little.",
         "reward − β·KL(π‖π_ref)", ("beta", "β", "KL coefficient", "leash"), ("knobs", "beta"), "flattery"),
    Term("Trust region",
         "The neighbourhood of the old policy in which the surrogate can be believed. TRPO keeps every update inside "
         "by a hard limit on the KL to the old policy; a penalty to the reference is something else.",
         "maximise E[w·A] while KL(old‖new) ≤ δ", ("natural gradient", "δ"), ("knobs", "max_kl")),
    Term("PPO",
         "Takes several steps on each batch of answers and silences tokens that have moved far enough. Clipping makes "
         "large moves unrewarding; it does not make them impossible.",
         aliases=("proximal policy optimization", "PPO-clip"), see=("knobs", "algorithm"), algorithm="ppo"),
    Term("GRPO",
         "Answers to one prompt are each other's baseline: advantage is reward minus the group's mean, over its "
         "spread. No value head is needed, and one answer's advantage goes to all its tokens.",
         aliases=("group relative policy optimization",), see=("panel", "answers"), play="learn-to-think",
         algorithm="grpo"),
)  # fmt: skip
