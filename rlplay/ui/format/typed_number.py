"""A number typed digit by digit, without a field for it."""

from __future__ import annotations


class TypedNumber:
    """The number of an update: in a list, each digit goes there at once."""

    def __init__(self) -> None:
        self._typed: int | None = None

    def add(self, digit: int, shown: int | None, most: int) -> int:
        """The number after another digit, at most `most`.

        A digit begins a new number if the typed one is no longer `shown`, or would be too large with it.
        """
        before = self._typed if self._typed == shown else None
        longer = digit if before is None else 10 * before + digit
        self._typed = longer if longer <= most else min(digit, most)
        return self._typed
