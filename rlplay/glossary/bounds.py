"""What limits an update: ratio, clipping, KL, and the two policies to which it is measured."""

from __future__ import annotations

from rlplay.glossary.term import Term

BOUNDS = (
    Term("Old policy",
         "The policy as it was when the update began. In learning from rewards it wrote the answers on the screen "
         "(behaviour policy). It stays fixed while the new policy moves.",
         aliases=("behaviour policy", "behavior policy", "sampling policy"), see=("panel", "token")),
    Term("New policy",
         "The policy as the update leaves it: the one that learning improves (target policy). The Token panel shows it "
         "beside the old policy and the reference.",
         aliases=("target policy", "current policy"), see=("lens", "prob_delta")),
    Term("Reference",
         "A frozen copy of the policy from the start of the run or of its stage. It is never trained; the KL to it "
         "measures how far the policy has moved.",
         aliases=("reference model", "ref", "frozen model", "SFT model"), see=("lens", "log_ratio")),
    Term("On-policy",
         "Learning from answers that the very same weights have just written. In learning from rewards, the first "
         "optimizer step of every update is on-policy, so all its ratios are 1. SARSA is called on-policy because its "
         "values are about the policy that makes the moves.",
         aliases=("on policy",), see=("lens", "importance_ratio")),
    Term("Off-policy",
         "Learning from answers that other weights wrote: an earlier version, another model, a person. The ratio of a "
         "whole answer corrects for the difference, that of a token only in part; the further apart the two policies "
         "are, the more a few large ratios decide. "
         "Q-learning needs no ratio: its target takes the best next move, whichever was made.",
         aliases=("off policy", "stale", "importance sampling"), see=("knobs", "num_iterations")),
    Term("Ratio",
         "How many times as likely a token is now as when it was sampled. A quotient of probabilities is always above "
         "0; the advantage is what can be below 0.",
         "w = π_new/π_old", ("importance ratio", "probability ratio", "importance weight"),
         ("lens", "importance_ratio")),
    Term("Clipping",
         "Once w has left the band 1 ± ε in the direction that A pushes, the surrogate's gradient "
         "for this token is 0. That takes away the reason to go further. It limits neither the ratio nor the KL, "
         "because one step can overshoot the band and other tokens still move the same weights. With one optimizer "
         "step per batch it never happens.",
         "min(w·A, clip(w, 1 − ε, 1 + ε)·A)", ("clip", "epsilon", "ε", "clipped"), ("lens", "clip_state")),
    Term("Clip fraction",
         "The share of tokens that clipping leaves without a gradient: A > 0 above the band, or A < 0 below it. The "
         "share "
         "outside the band on either side is a different, usually larger number.",
         aliases=("clipfrac", "clip ratio"), see=("curve", "clip_ratio/region_mean")),
    Term("Surrogate",
         "What an update maximises in place of the expected reward, which it cannot compute: usually ratio times "
         "advantage on the sampled answers, bounded in one way or another. It is a good stand-in only near the old "
         "policy.",
         aliases=("surrogate objective",), see=("knobs", "surrogate")),
    Term("KL divergence",
         "How far one policy is from another. Let p write: how much likelier, per token, does p find its own text than "
         "q does? The answer is an average of log-ratios, in nats. At 0 they agree on every token; 1 nat is a factor "
         "of 2.7 (a geometric mean). It is not symmetric: swap p and q, and the number changes.",
         "KL(p‖q) = Σ p·log(p/q)", ("KL", "Kullback–Leibler", "relative entropy"),
         ("curve", "kl")),
    Term("KL to reference",
         "How far the policy has moved from its frozen copy since the run, or its stage, began. β holds it back.",
         "KL(π‖π_ref)", ("KL penalty", "drift"), ("lens", "ref_kl")),
    Term("KL to old policy",
         "How far one update has moved the policy from the one that began it. TRPO limits this KL; it is not the KL to "
         "the reference.",
         "KL(π_old‖π)", ("approx_kl", "KL old to new"), ("curve", "kl_old")),
    Term("KL estimators",
         "Nobody can add up all possible texts, so KL is estimated from the sampled tokens, each with r = p_ref/p, the "
         "reference's probability over the policy's. k1 is right on average but noisy: tokens, and even whole curves, "
         "can be below 0. k2 is never below 0 and less noisy, but slightly biased; less so, the closer the policies. "
         "k3 is never below 0 and right on average. That is about the value: on-policy in a loss, only the gradient "
         "of k2 is right without a correction. (Schulman 2020, “Approximating KL Divergence”.)",
         "k1 = −log r\nk2 = ½·(log r)²\nk3 = r − 1 − log r", ("k1", "k2", "k3", "estimator"),
         ("knobs", "kl_estimator")),
    Term("KL weight β",
         "What a nat of KL to the reference costs. At 0 no penalty keeps the policy from drifting or from gaming the "
         "reward; a high β keeps it close, and it learns little. DPO's β is the same weight, there multiplying the "
         "log-ratios; other losses on pairs have a β of their own.",
         "reward − β·KL(π‖π_ref)", ("beta", "β", "KL coefficient", "leash"), ("knobs", "beta")),
    Term("Trust region",
         "The neighbourhood of the old policy in which the surrogate can be relied on. TRPO keeps every update inside "
         "it by a hard limit on the KL to the old policy; a penalty on the KL to the reference is something else.",
         "maximise E[w·A] while KL(old‖new) ≤ δ", ("natural gradient", "δ"), ("knobs", "max_kl")),
    Term("PPO",
         "Takes several optimizer steps on each batch and cuts the gradient of tokens whose ratio has moved far "
         "enough the way their advantage pulls. "
         "Clipping makes large moves unrewarding; it does not make them impossible.",
         aliases=("proximal policy optimization", "PPO-clip"), see=("knobs", "algorithm"), algorithm="ppo"),
    Term("GRPO",
         "Compares the answers to one prompt with each other: the advantage is the reward minus the group's mean, "
         "divided by the group's standard deviation. It needs no value head; every token gets its answer's advantage.",
         aliases=("group relative policy optimization",), see=("panel", "answers"),
         algorithm="grpo"),
)  # fmt: skip
