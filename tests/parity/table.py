"""Prints the worst differences as a Markdown table: python -m tests.parity.table"""

from __future__ import annotations

import sys

from tests.parity import (
    distillation_cases,
    policy_cases,
    preference_cases,
    reference_cases,
    router_case,
    trpo_case,
    verl_cases,
)
from tests.parity.case import LIMITS, SEEDS, Case

CASES = (
    policy_cases.cases()
    + preference_cases.cases()
    + verl_cases.cases()
    + reference_cases.cases()
    + trpo_case.cases()
    + distillation_cases.cases()
    + router_case.cases()
)


def main() -> int:
    """Print the table; 1 if a row is over its limit."""
    print("| algorithm or loss | against | worst, float32 | worst, float64 | cases |")
    print("| --- | --- | --- | --- | --- |")
    rows: dict[tuple[str, str], list[Case]] = {}
    for case in CASES:
        rows.setdefault((case.row, case.against), []).append(case)
    good = True
    for (row, against), cases in rows.items():
        worst = {
            d: max(max(c.differences(d, s).values()) for c in cases if d in c.dtypes for s in SEEDS) for d in LIMITS
        }
        good &= all(worst[dtype] <= limit for dtype, limit in LIMITS.items())
        figures = " | ".join(f"{difference:.1e}" for difference in worst.values())
        print(f"| {row} | {against} | {figures} | {len(cases) * len(SEEDS)} |")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
