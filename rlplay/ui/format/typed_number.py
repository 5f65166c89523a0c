"""A number typed digit by digit, without a field for it."""

from __future__ import annotations


class TypedNumber:
    """The number of an update: in a list, each digit goes there at once."""

    def __init__(self) -> None:
        self.typed: int | None = None
        self.place: int | None = None
        """Where the number led, if not to the update of this number."""

    def add(self, digit: int, shown: int | None, most: int) -> int:
        """The number after another digit, at most `most`.

        A digit begins a new number if the place of the typed one is no longer `shown`, or would be too large with it.
        """
        before = self.typed if self.place == shown else None
        longer = digit if before is None else 10 * before + digit
        self.typed = self.place = longer if longer <= most else min(digit, most)
        return self.typed
