"""Reading numbers out of a completion, for verifiers."""

from __future__ import annotations

import re
from decimal import Decimal

# A minus sign counts only where it cannot be a subtraction. Digits are ASCII only: a verifier that accepts look-alike
# digits rewards text that a reader would call wrong.
_NUMBER = re.compile(r"(?<![0-9])-?[0-9]+(?:\.[0-9]+)?")


def numbers_in(text: str) -> list[Decimal]:
    """Every number written in ASCII digits, in order: integers and decimals, negative or not.

    `Decimal` because `int` refuses more than 4300 digits, and a policy may well write them.
    """
    return [Decimal(match) for match in _NUMBER.findall(text)]


def last_number(text: str) -> Decimal | None:
    """The last number in `text`, or None when there is none."""
    found = numbers_in(text)
    return found[-1] if found else None
