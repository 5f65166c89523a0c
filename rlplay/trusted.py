"""The one gate before the user's code: a file runs only if the user has agreed to its content, or has named it.

A scenario, a run file, a setting, an algorithm's file or another process can name Python code, which runs with all the
user's rights. Whoever names it, the loader asks here about the very bytes that it is about to run.

- `agree`: the user has read files and agrees that they run as they are. `trusted.json` remembers it.
  An address, to which prompts and answers are sent, is agreed to as a module is: by its name.
- `follow`: the user has named a file, on the command line or as a knob. Its later versions run, too, while this process
  lasts, with what they import beside them by name, so that the user can mend a mistake while the run waits. What has
  run is remembered, too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from rlplay import paths
from rlplay.neighbours import with_imports
from rlplay.plain_yaml import PlainYamlError, plain_yaml
from rlplay.trace.text import visible

SERVED = (".yaml", ".yml")
"""Endings of files that name no code, but a server to which prompts and answers go."""
_MOST_NAMED = 5
_PASSWORD = re.compile(r"(?<=://)[^/?#]*@")


class Grants(msgspec.Struct, frozen=True):
    """What may run: files with the hash of their content, modules and addresses with an empty one, followed files."""

    contents: dict[str, str] = {}
    followed: list[str] = []


class UntrustedError(ImportError):
    """Code that the user has not agreed to: one line with the file and what to do."""


_agreed: dict[str, str] = {}
_followed: set[str] = set()


def is_distrust(error: BaseException | None) -> bool:
    """Whether an error says, or was raised because another one says, that code is not trusted."""
    while error is not None and not isinstance(error, UntrustedError):
        error = error.__cause__
    return error is not None


def is_module(name: str) -> bool:
    """Whether `name` can be that of a module, as in `trl.rewards`; a file's, with a slash or such an ending, cannot."""
    return not name.endswith((".py", *SERVED)) and all(part.isidentifier() for part in name.split("."))


def is_address(name: str) -> bool:
    """Whether `name` is that of a server, as in `http://127.0.0.1:8000`."""
    return "://" in name


def place(entry: str) -> str:
    """The file, as an absolute path, or the module of `FILE.py:FUNCTION` or `MODULE:FUNCTION`."""
    found = entry.rpartition(":")[0] or entry
    return found if is_module(found) else os.path.abspath(Path(found).expanduser())


def contents(places: Iterable[str]) -> dict[str, str]:
    """The files that would run, what they import beside them included, with their hashes; others with an empty one."""
    found = dict[str, str]()
    for each in places:
        if _is_name(each):
            found[each] = ""
        else:
            found |= {_key(file): _hash(file) for file in with_imports(Path(each)) if file.is_file()}
    return found


def strange(places: Iterable[str]) -> list[str]:
    """Those of the files, modules and addresses that the user has neither named nor agreed to as they are now.

    A file that is gone runs nothing.
    """
    known = _remembered() | _agreed
    return [
        each
        for each in places
        if not _is_followed(each) and any(known.get(name) != content for name, content in contents([each]).items())
    ]


def agree(agreed: Mapping[str, str]) -> None:
    """Let files with these `contents` run, now and later. Where nothing can be written, only this process knows it."""
    _agreed.update(agreed)
    partial = _file().with_name(f"{_file().name}.{os.getpid()}")
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        with _file().with_name(f"{_file().name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed: another process may add something else
            partial.write_text(json.dumps(_remembered() | dict(agreed), indent=1) + "\n", encoding="utf-8")
            partial.replace(_file())
    except OSError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def follow(places: Iterable[str]) -> None:
    """Let files run that the user has named, as they are and as they will be, while this process lasts."""
    for each in places:
        if _is_name(each):
            _agreed[each] = ""
        else:
            _followed.add(_key(Path(each)))


def grants() -> Grants:
    """What may run in this process, for one that it starts."""
    return Grants(dict(_agreed), sorted(_followed))


def take(given: Grants) -> None:
    """Let run what may run in the process that started this one."""
    _agreed.update(given.contents)
    _followed.update(given.followed)


def source(path: Path, imported: bool = False) -> bytes:
    """The content of a file that is about to run; `imported` by another file of the user's.

    Raises UntrustedError, one line, if the user has not agreed to it; OSError if it cannot be read.
    """
    content = path.read_bytes()
    key, found = _key(path), hashlib.sha256(content).hexdigest()
    if _agreed.get(key) == found or _remembered().get(key) == found:
        return content
    if key in _followed or (imported and _imported_by_followed(key)):
        agree({key: found})
        return content
    raise UntrustedError(f"{path} is not trusted as it is now; read it, run: rlplay trust {shlex.quote(str(path))}")


def check_module(name: str) -> None:
    """Raises UntrustedError, one line, if the user has not agreed that an installed module runs."""
    if name not in _agreed and name not in _remembered():
        raise UntrustedError(f"the module {name} is not trusted; add --trust if it may run")


def check_address(name: str) -> None:
    """Raises UntrustedError, one line, if the user has not agreed that anything is sent to an address."""
    if name not in _agreed and name not in _remembered():
        raise UntrustedError(f"the address {name} is not trusted; add --trust if it may be asked")


def consequences(places: Iterable[str]) -> str:
    """What would happen with these files, modules and addresses, in the words of a question to the user."""
    named = list(places)
    code = ", ".join(described(each) for each in named if not is_address(each) and not each.endswith(SERVED))
    asked = ", ".join(_addresses(each) for each in named if is_address(each) or each.endswith(SERVED))
    parts = {code: f"run the code of {code}", asked: f"send prompts and answers to {asked}"}
    return " and ".join(words for names, words in parts.items() if names)


def _addresses(each: str) -> str:
    """Where prompts and answers go: an address, or those in a file, with the name of the key that goes with them.

    They are read as the one who sends reads them, so that the question is about what is done.
    """
    if is_address(each):
        return each
    try:
        content = plain_yaml(Path(each).read_bytes().decode())
        found = [content[word] for word in ("judge", "teacher") if content.get(word)]
        key = f" with the key ${content['key']}" if content.get("key") else ""
        named = " or ".join(without_password(address) for address in found) or "no address"
    except (OSError, UnicodeDecodeError, PlainYamlError, AttributeError, TypeError):
        return f"an address that cannot be read (named in {each})"
    return f"{visible(named + key)} (named in {each})"


def without_password(address: str) -> str:
    """An address that may be shown: without what stands before the host, as a name and a password."""
    return _PASSWORD.sub("…@", address)


def described(each: str) -> str:
    """A file or module, and the files beside it that it imports, for a question to the user."""
    if _is_name(each):
        return each
    file, *others = with_imports(Path(each))
    names = [str(path.relative_to(file.resolve().parent)) for path in others[:_MOST_NAMED]]
    names += [f"{len(others) - len(names)} more"] * (len(others) > len(names))
    return f"{each} (imports {', '.join(names)})" if names else each


def _is_followed(each: str) -> bool:
    return each in _agreed if _is_name(each) else _key(Path(each)) in _followed


def _imported_by_followed(key: str) -> bool:
    """Whether a followed file imports this one by name: other files of its folder may be anybody's."""
    return any(key in map(_key, with_imports(Path(file))) for file in _followed)


def _is_name(each: str) -> bool:
    """Whether it is a module or an address, which have no content that could be looked at."""
    return is_module(each) or is_address(each)


def _key(path: Path) -> str:
    return os.path.realpath(path.expanduser())


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "unreadable"


def _file() -> Path:
    return paths.home() / "trusted.json"


def _remembered() -> dict[str, str]:
    try:
        content = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
