"""How far a mean of samples may be from what it estimates: 95 % confidence intervals."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rlplay.trace.records import Array

Interval = Literal["", "Wilson", "Student t"]
Z = 1.959963984540054
"""The 0.975 quantile of the standard normal distribution."""
FEWEST = 8
"""Samples for an interval by Student's t; the series for its quantile is good to four digits from here on."""


def confidence(values: Array) -> tuple[float | None, float | None, Interval]:
    """A 95 % interval for the mean of independent samples `values` [n], and what it is called.

    If all are 0 or 1, Wilson's score interval, which keeps its coverage near 0 and 1 and for few samples (Wilson
    1927, JASA 22:209). Else Student's t interval (Student 1908, Biometrika 6:1). No interval, None and "", for too few
    samples, and where all are equal and not 0 or 1: without variation in the sample the spread cannot be estimated.
    """
    n = len(values)
    if n and np.isin(values, (0, 1)).all():
        return *wilson(int(values.sum()), n), "Wilson"
    if n < FEWEST or np.ptp(values) == 0:
        return None, None, ""
    mean, half = float(values.mean()), student(n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
    return mean - half, mean + half, "Student t"


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95 % score interval for a probability, from `successes` of `n` trials."""
    share, spread = successes / n, Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def student(freedom: int) -> float:
    """The 0.975 quantile of Student's t, by its expansion around the normal's (Abramowitz and Stegun 1964, 26.7.5)."""
    z = Z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, start=1))
