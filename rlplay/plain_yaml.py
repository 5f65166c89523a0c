"""YAML that somebody else wrote, read as text, numbers, lists and mappings, and refused before it costs anything.

Neither aliases nor merge keys can multiply it, nor can its depth exhaust the stack. Dates are text. The library's
loader in C is never used: it crashes on a hundred thousand brackets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import yaml

from rlplay.trace.text import brief_words, quote, whole

LONGEST = 500_000
"""Characters; the longest bundled scenario has 6,000."""
DEEPEST = 50
"""Levels of lists and mappings."""
MOST_NODES = 50_000
"""Values, each counted as often as aliases repeat it."""
SMALLEST_NUMBER, LARGEST_NUMBER = -(2**63), 2**63 - 1
_LONGEST_NUMBER = 400
"""Characters; enough for any double that is written out."""
_TAGS = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map", "merge")
)


class PlainYamlError(ValueError):
    """YAML that is not read. `line` counts from 1 and is None if the text as a whole is meant."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


def read_text(path: Path) -> str:
    """The text of a file, without a byte-order mark. Raises PlainYamlError if it is too long, and OSError."""
    if path.stat().st_size > 4 * LONGEST:
        raise PlainYamlError(f"it has more than {LONGEST:,} characters, the most that rlplay reads")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlainYamlError(f"not UTF-8 text: {error.reason} at byte {error.start + 1}; save it as UTF-8") from None


class Parsed:
    """The content of a YAML text, and the nodes that know its lines."""

    def __init__(self, text: str) -> None:
        """Raises PlainYamlError, one line, if the text is not YAML, or is more than it may be."""
        if len(text) > LONGEST:
            raise PlainYamlError(f"it has {len(text):,} characters; {LONGEST:,} are the most")
        try:
            loader = _Loader(text)
            self.node: yaml.Node | None = loader.get_single_node()
            self.content: Any = None if self.node is None else loader.construct_document(self.node)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else None
            raise PlainYamlError(f"not YAML: {brief_words(str(error.problem))}", line) from None
        except yaml.YAMLError as error:
            raise PlainYamlError(f"not YAML: {brief_words(' '.join(str(error).split()))}") from None


def plain_yaml(text: str) -> Any:
    """The content of a YAML text. Raises PlainYamlError, one line with the number of its line if one is to blame."""
    try:
        return Parsed(text).content
    except PlainYamlError as error:
        raise error if error.line is None else PlainYamlError(f"line {error.line}: {error}") from None


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's
        first: [(tag, pattern) for tag, pattern in known if tag in _TAGS]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._count = 0
        self._sizes: dict[int, int] = {}  # nodes that each finished node stands for, by its identity

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node, checked before anything is made of it."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        before = self._count
        if self._depth >= DEEPEST:
            _refuse(event, f"it is nested more than {DEEPEST} levels deep")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self._sizes:
                _refuse(event, "an alias (*) refers to a node that contains it")
            self._count += self._sizes[id(node)]
        else:
            self._count += 1
            self._sizes[id(node)] = self._count - before
            _check(node)
        if self._count > MOST_NODES:
            _refuse(event, f"it has more than {MOST_NODES:,} values, those repeated by aliases (*) included")
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
        except (ValueError, LookupError, TypeError):  # of a wrong tag, as in !!int x
            _refuse(node, f"{quote(node.value)} is not of the type {node.tag.rpartition(':')[2]}")
        if type(value) is int and not SMALLEST_NUMBER <= value <= LARGEST_NUMBER:
            _refuse(node, f"{quote(node.value)} is a number of more than 64 bits")
        return value


def _check(node: yaml.Node | None) -> None:
    if node is None:
        return
    if node.tag not in _TAGS:
        _refuse(node, f"the tag {quote(node.tag.replace('tag:yaml.org,2002:', '!!'))} is none that rlplay reads")
    if isinstance(node, yaml.ScalarNode):
        if not whole(node.value):
            _refuse(node, f"{quote(node.value)} contains half a character (a lone surrogate), which is not text")
        if node.tag.endswith((":int", ":float")) and len(node.value) > _LONGEST_NUMBER:
            _refuse(node, f"a number has {len(node.value):,} characters; {_LONGEST_NUMBER} are the most")
    elif isinstance(node, yaml.MappingNode):
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE and key.value in seen:
                _refuse(key, f"{quote(key.value)} appears twice")
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)


_MERGE = "tag:yaml.org,2002:merge"


def _refuse(place: Any, problem: str) -> NoReturn:
    raise PlainYamlError(problem, place.start_mark.line + 1)
