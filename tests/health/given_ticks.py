"""The same as in `ticks`, of runs that learn from given answers or from a teacher."""

from __future__ import annotations

from dataclasses import replace

from rlplay.health.counts import WinCount
from rlplay.health.finding import Evidence
from rlplay.health.pair_numbers import PairNumbers
from tests.health.evidence import curves, evidence

DPO, KTO, SFT, RM = (f"TRL 1.16.0 {name}Trainer" for name in ("DPO", "KTO", "SFT", "Reward"))
PAIRS = PairNumbers(64, 64, 64, 0, 34, 28, frozenset(range(64)), WinCount(50, 64), 0)
FALLING = [2.0 - 0.1 * n for n in range(12)]


def given(found: PairNumbers | None, source: str = DPO, updates: int = 1) -> Evidence:
    return evidence(updates, pairs=found, source=source, on_record=())


GIVEN_TICKED: dict[str, list[tuple[Evidence, str]]] = {
    "Pairs": [(given(PAIRS), "0 of 64 have the same answer twice; the chosen one is longer in 34, shorter in 28")],
    "Labels": [(given(PAIRS), "the chosen answer is the better one in 78.1 % of 64")],
    "Labels of both kinds": [(given(replace(PAIRS, chosen=50, rejected=30), KTO), "50 chosen answers and 30 rejected")],
    "Preference": [
        (curves(6, {"accuracy": [0.4, 0.7, 0.8, 0.9, 0.8, 0.9]}, RM), "the chosen answer was ahead in 75.0 % of the"),
    ],
    "Chosen answers": [
        (curves(10, {"logps/chosen": [-14.0 + n for n in range(10)]}, DPO),
         "logps/chosen went from −12 to −7 in 10 updates; a loss of 2 nats, to a seventh, would show"),
        (curves(10, {"logps/chosen": [-1.0, -3.0] * 5, "rewards/chosen": [0.0] + [-0.1] * 9}, DPO, beta=0.1),
         "rewards/chosen is −0.1 at beta 0.1; logps/chosen went from −1.8 to −2.2"),
    ],
    "Held-out loss": [(curves(3, {"eval_loss": [2.0, 1.5, 1.6]}, SFT), "from 2 to 1.6 in 3 evaluations, lowest 1.5")],
    "Loss": [(curves(12, {"loss": FALLING}, SFT), "from 1.9 to 1 in 12 updates")],
}  # fmt: skip
GIVEN_NOT_TICKED: dict[str, dict[str, Evidence]] = {
    "Pairs": {
        "few": given(replace(PAIRS, pairs=15)), "always the same few": given(replace(PAIRS, keys=frozenset(range(8)))),
        "none": given(None),
    },
    "Labels": {"nothing says so": given(replace(PAIRS, better=WinCount())), "few": given(
        replace(PAIRS, better=WinCount(20, 29))
    )},
    "Labels of both kinds": {"few": given(replace(PAIRS, chosen=10, rejected=10), KTO)},
    "Preference": {
        "by chance": curves(6, {"accuracy": [0.5, 0.6, 0.4, 0.5, 0.6, 0.5]}, RM),
        "few updates": curves(4, {"accuracy": [0.9] * 4}, RM),
        "a first update where all tie": curves(5, {
            "rewards/accuracies": [0.0, 0.9, 0.9, 0.9, 0.9], "rewards/margins": [0.0, 0.1, 0.2, 0.3, 0.4],
        }, DPO),
    },
    "Chosen answers": {
        "falling": curves(10, {"logps/chosen": [-14.0 - n / 3 for n in range(10)]}, DPO),
        "answers too different to tell": curves(10, {"logps/chosen": [-14.0, -18.0] * 5}, DPO),
        "few updates": curves(9, {"logps/chosen": [-14.0] * 9}, DPO),
    },
    "Held-out loss": {"few": curves(2, {"eval_loss": [2.0, 1.5]}, SFT), "none": curves(2, {"loss": [2.0, 1.5]}, SFT)},
    "Loss": {
        "no fall": curves(12, {"loss": [2.0, 2.1] * 6}, SFT), "few updates": curves(7, {"loss": FALLING[:7]}, SFT),
    },
}  # fmt: skip
