"""Reads a pickle as data: a machine for its opcodes that calls nothing which the file names.

A pickle is a program for a stack of values, which may call anything that can be imported. This machine imports nothing.
A name in the file stays a `Name`; what is made with it is what `make` returns, and `make` decides which names it knows.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlplay.trace.inflate import Budget

_FLOATS, _BYTES = re.compile(rb"(?:G.{8})+", re.DOTALL), re.compile(rb"(?:K.)+", re.DOTALL)
_EACH, _AT_ONCE = 64, 2**16
"""Bytes that a value takes in Python, about, and values after which they are counted."""
_SHARED = (100_000, 64)
"""Containers in a value that is written out in full, at least, and for each that the program makes: some are shared."""
_LONGEST = 16
"""Bytes of a whole number."""


class PickleError(ValueError):
    """A pickle that is damaged, or that holds something else than data."""


@dataclass(frozen=True)
class Name:
    """The name of a class or a function, which is not imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False)
class Made:
    """An object of a class of the trainer's, as far as it is data."""

    of: Name
    arguments: tuple[Any, ...] = ()
    state: dict[str, Any] = field(default_factory=dict)


class Unfinished:
    """Something that is complete once the pickle gives it a state."""

    def finished(self, state: Any) -> Any:
        """The value that it is with this state."""
        raise NotImplementedError


class _Mark:
    pass


_MARK = _Mark()

Make = Callable[[Name, tuple[Any, ...]], Any]
"""What a name makes of arguments; raises PickleError if it is none that makes data."""


def loads(data: bytes, make: Make, known: Callable[[Name], bool], stored: Callable[[Any], Any], budget: Budget) -> Any:
    """The value of a pickle.

    `known` says which names may occur, and `stored` what a persistent id stands for. Raises PickleError if the pickle
    is damaged, names anything else, or would take more than the budget.
    """
    machine = _Machine(data, make, known, stored, budget)
    try:
        value = machine.run()
        _within(value, machine.made_so_far, budget)
    except PickleError:
        raise
    except (LookupError, TypeError, AttributeError, struct.error, ValueError, RecursionError, OverflowError) as error:
        raise PickleError(f"it is damaged at byte {machine.place} ({type(error).__name__})") from None
    return value


def _within(value: Any, made: int, budget: Budget) -> None:
    """Raises ValueError if the value, written out in full, takes more than the budget: its parts may be shared."""
    waiting, left = [value], _SHARED[0] + _SHARED[1] * made
    while waiting:
        each = waiting.pop()
        if isinstance(each, Made):
            each = (each.arguments, each.state)
        elif isinstance(each, dict):
            each = (*each.keys(), *each.values())
        if isinstance(each, str | bytes | list | tuple | set | frozenset):
            budget.spend(len(each))
        if isinstance(each, list | tuple | set | frozenset):
            left -= 1
            if left < 0:
                raise PickleError("its parts hold each other over and over")
            waiting += [part for part in each if not isinstance(part, int | float)]


class _Machine:
    """The stack of a pickle, and its memo."""

    def __init__(
        self, data: bytes, make: Make, known: Callable[[Name], bool], stored: Callable[[Any], Any], budget: Budget
    ) -> None:
        self.place = self.made_so_far = 0
        self._data, self._make, self._known, self._stored, self._budget = data, make, known, stored, budget
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._places: dict[int, int] = {}
        """In the memo, of what is unfinished, by identity."""

    def run(self) -> Any:
        """The value that the program leaves. Raises what a damaged program leads to."""
        data, stack, numbers = self._data, self._stack, 0
        while True:
            op = data[self.place]
            self.place += 1
            if op == 0x4B:  # K: a byte, often many of them
                found = _BYTES.match(data, self.place - 1)
                if found is None:
                    raise PickleError("it is cut off")
                self.extend(found[0][1::2])
                self.place = found.end()
            elif op == 0x47:  # G: a float, often many of them
                found = _FLOATS.match(data, self.place - 1)
                if found is None:
                    raise PickleError("it is cut off")
                raw = np.frombuffer(found[0], dtype=np.uint8).reshape(-1, 9)[:, 1:]
                self.extend(np.ascontiguousarray(raw).view(">f8").ravel().tolist())
                self.place = found.end()
            elif op in (0x4A, 0x4D):  # J and M: whole numbers of four and of two bytes
                size = 4 if op == 0x4A else 2
                stack.append(int.from_bytes(data[self.place : self.place + size], "little", signed=size == 4))
                self.place += size
                numbers += 1
                if numbers % _AT_ONCE == 0:
                    self._budget.spend(_AT_ONCE * _EACH)
            elif op == 0x2E:  # STOP
                return stack.pop()
            else:
                _OPCODES[op](self)

    def extend(self, values: Sequence[Any]) -> None:
        """Put many numbers on the stack."""
        self._budget.spend(_EACH * len(values))
        self._stack.extend(values)

    def take(self, count: int) -> bytes:
        """The next bytes of the program."""
        end = self.place + count
        if not self.place <= end <= len(self._data):
            raise PickleError("it is cut off")
        piece = self._data[self.place : end]
        self.place = end
        return piece

    def skip(self, count: int) -> None:
        """Go on after the next bytes."""
        self.take(count)

    def drop(self, _value: Any) -> None:
        """Do nothing with a value."""

    def number(self, form: str) -> int:
        """The next number of the program."""
        found: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return found

    def line(self) -> str:
        """The next line of the program."""
        end = self._data.index(b"\n", self.place)
        return self.take(end + 1 - self.place)[:-1].decode()

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self.made_so_far += 1
        self._budget.spend(_EACH)
        self._stack.append(value)

    def pop(self) -> Any:
        return self._stack.pop()

    def top(self) -> Any:
        return self._stack[-1]

    def marked(self) -> list[Any]:
        """What is above the last mark, which goes with it."""
        place = next((i for i in range(len(self._stack) - 1, -1, -1) if self._stack[i] is _MARK), None)
        if place is None:
            raise PickleError("it has no mark")
        found = self._stack[place + 1 :]
        del self._stack[place:]
        return found

    def name(self, module: str, name: str) -> Name:
        """A name, if it may occur."""
        found = Name(module, name)
        if not self._known(found):
            raise PickleError(f"it names {str(found)[:80]!r}, which is no data, so nothing of it was read")
        return found

    def made(self, name: Any, arguments: Any) -> None:
        """Push what a name makes of the arguments."""
        if not isinstance(name, Name) or not isinstance(arguments, tuple):
            raise PickleError("it calls something that is no name")
        self.push(self._make(name, arguments))

    def built(self) -> None:
        """Give the object on top its state."""
        state, thing = self.pop(), self.top()
        if isinstance(thing, Made):
            parts = state if isinstance(state, tuple) else (state,)
            for part in parts:
                thing.state.update(part if isinstance(part, dict) else {})
        elif isinstance(thing, Unfinished):
            done = self._stack[-1] = thing.finished(state)
            place = self._places.pop(id(thing), None)
            if place is not None and self._memo[place] is thing:
                self._memo[place] = done
        elif not isinstance(thing, dict):
            raise PickleError(f"it gives a {type(thing).__name__} a state")

    def remembered(self, place: int) -> None:
        self._memo[place] = thing = self.top()
        if isinstance(thing, Unfinished):
            self._places[id(thing)] = place

    def recalled(self, place: int) -> None:
        self.push(self._memo[place])

    def extended(self, values: Iterable[Any]) -> None:
        _container(self.top(), list).extend(values)

    def items(self, flat: list[Any]) -> None:
        _container(self.top(), dict).update(zip(map(flat_key, flat[::2]), flat[1::2], strict=True))

    def memoized(self) -> None:
        self.remembered(len(self._memo))

    def stored(self) -> None:
        self.push(self._stored(self.pop()))


def _container(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise PickleError(f"it adds to a {type(value).__name__}")
    return value


def flat_key(value: Any) -> Any:
    """A key of a mapping or a set: something flat, as the hash of deeply nested tuples overflows the stack."""
    for each in value if isinstance(value, tuple) else (value,):
        if not isinstance(each, str | bytes | int | float | None):
            raise PickleError(f"it has a {type(each).__name__} as a key")
    return value


def _pushes(read: Callable[[_Machine], Any]) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(read(machine))


def _long(machine: _Machine, size: int) -> int:
    if size > _LONGEST:
        raise PickleError(f"it has a number of {size} bytes")
    return int.from_bytes(machine.take(size), "little", signed=True)


def _last(machine: _Machine, count: int) -> tuple[Any, ...]:
    values = tuple(machine.pop() for _ in range(count))
    return values[::-1]


def _appended(machine: _Machine) -> None:
    value = machine.pop()
    machine.extended([value])


def _called(machine: _Machine) -> None:
    arguments = machine.pop()
    machine.made(machine.pop(), arguments)


def _called_by_name(machine: _Machine) -> None:
    options, arguments = machine.pop(), machine.pop()
    if options:
        raise PickleError("it makes an object with options")
    machine.made(machine.pop(), arguments)


def _global_on_stack(machine: _Machine) -> Name:
    module, name = _last(machine, 2)
    return machine.name(str(module), str(name))


_OPCODES: dict[int, Callable[[_Machine], None]] = {
    0x80: lambda m: None if m.number("<B") <= 5 else _refuse("it is of a newer protocol"),
    0x95: lambda m: m.skip(8),  # FRAME: its length says nothing that is needed
    ord("("): lambda m: m.push(_MARK),
    ord("0"): lambda m: m.drop(m.pop()),
    ord("1"): lambda m: m.drop(m.marked()),
    ord("2"): lambda m: m.push(m.top()),
    ord("N"): lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    0x8A: _pushes(lambda m: _long(m, m.number("<B"))),
    0x8B: _pushes(lambda m: _long(m, m.number("<i"))),
    ord("X"): _pushes(lambda m: m.take(m.number("<I")).decode("utf-8", "surrogatepass")),
    0x8C: _pushes(lambda m: m.take(m.number("<B")).decode("utf-8", "surrogatepass")),
    0x8D: _pushes(lambda m: m.take(m.number("<Q")).decode("utf-8", "surrogatepass")),
    ord("B"): _pushes(lambda m: m.take(m.number("<I"))),
    ord("C"): _pushes(lambda m: m.take(m.number("<B"))),
    0x8E: _pushes(lambda m: m.take(m.number("<Q"))),
    0x96: _pushes(lambda m: m.take(m.number("<Q"))),
    ord("]"): lambda m: m.push([]),
    ord("}"): lambda m: m.push({}),
    ord(")"): lambda m: m.push(()),
    0x8F: lambda m: m.push(set()),
    ord("a"): _appended,
    ord("e"): lambda m: m.extended(m.marked()),
    ord("l"): _pushes(lambda m: m.marked()),
    ord("t"): _pushes(lambda m: tuple(m.marked())),
    0x85: _pushes(lambda m: _last(m, 1)),
    0x86: _pushes(lambda m: _last(m, 2)),
    0x87: _pushes(lambda m: _last(m, 3)),
    ord("s"): lambda m: m.items(list(_last(m, 2))),
    ord("u"): lambda m: m.items(m.marked()),
    0x90: lambda m: _container_update(m, m.marked()),
    0x91: _pushes(lambda m: frozenset(map(flat_key, m.marked()))),
    ord("c"): _pushes(lambda m: m.name(m.line(), m.line())),
    0x93: _pushes(_global_on_stack),
    ord("R"): _called,
    0x81: _called,
    0x92: _called_by_name,
    ord("b"): _Machine.built,
    ord("q"): lambda m: m.remembered(m.number("<B")),
    ord("r"): lambda m: m.remembered(m.number("<I")),
    0x94: _Machine.memoized,
    ord("h"): lambda m: m.recalled(m.number("<B")),
    ord("j"): lambda m: m.recalled(m.number("<I")),
    ord("Q"): _Machine.stored,
}
"""What each opcode of the protocols 2 to 5 does; a file with another is refused."""


def _container_update(machine: _Machine, values: list[Any]) -> None:
    _container(machine.top(), set).update(map(flat_key, values))


def _refuse(why: str) -> None:
    raise PickleError(why)
