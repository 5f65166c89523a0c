"""The words of the screen in plain English, for somebody who meets them for the first time."""

from __future__ import annotations

KL = """\
**KL** (Kullback–Leibler divergence) says how far apart two policies are: by how many nats, on average for each token,
what one of them writes is likelier under itself than under the other. At 0 they agree on every token; at 1 a token is
about 2.7 times as likely under one as under the other.

* **KL to reference**: from the frozen model that the run began with, so the whole way so far. β holds it back.
* **KL to old policy**: from the policy that sampled these answers, so the way of one update.

Nobody can add up all possible texts, so KL is estimated from the sampled tokens, each with r = p_ref/p, the
reference's probability over the policy's (Schulman 2020, “Approximating KL Divergence”):

* **k1** = −log r is right on average, but noisy: single tokens, even whole curves, can be below 0.
* **k2** = ½·(log r)² is never below 0 and quiet, but a little off; the less so, the nearer the policies.
* **k3** = r − 1 − log r is never below 0 and right on average.
"""

WORDS = f"""\
**Policy**: the model that is trained. For every position it gives each token of its vocabulary a probability; sampling
draws from these. The **reference** is a frozen copy from the start of the run, the **old** policy the one that sampled
the answers on the screen, the **new** one what it became in the update.

**Reward**: what an answer earned. **Advantage** A: how much more that is than expected, for instance more than the
other answers to the same prompt earned. Above 0 the tokens are to become likelier, below 0 less likely.

**Credit**: what the update really did with one token, + pulled it up, − pushed it down; the sum
over its optimizer steps.

**Ratio** w: how many times as likely a token is now as when it was sampled. **Clipping**: once w has left the band
1 ± ε in the direction that A pushes, the token no longer pulls, so that one batch cannot carry the policy too far.

**Entropy**: how undecided the policy is about the next token, in nats; 0 is certainty. A policy without entropy no
longer tries anything.

{KL}
**β** (beta): what a nat of KL to the reference costs. At 0 nothing holds the policy back from drifting, or cheating.

**Update**: one round of sampling, scoring, credit and optimizer steps. A batch is gone over in **iterations**, each cut
into **minibatches**, one **optimizer step** for each.
"""
