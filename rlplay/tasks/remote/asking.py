"""Many requests to a server at once: within limits, again where it may help, and none that was answered before."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from rlplay.containment import OwnError
from rlplay.tasks.remote import replies
from rlplay.tasks.remote.served_file import Served
from rlplay.trace.text import brief, visible

_AGAIN = (408, 409, 425, 429)
_BACKOFF, _LONGEST_WAIT = 0.5, 60.0
"""Seconds before the first retry, doubled for each further one; and the longest that a server may ask for."""
_TOO_MANY = 0.25
"""Of the answers, the share that may fail before the run waits."""
_LONGEST = 64 * 2**20
"""Bytes of a reply; a teacher's, with all that it may say of 100,000 tokens, has half as many."""
_MOST_TOKENS = 10**9
"""That a reply may say it took; more is a mistake."""
_MILLION = 1e6


@dataclass
class Asked:
    """The replies to requests, in their order: what the server sent, or None and why there is nothing."""

    found: list[Any] = field(default_factory=list)
    failures: dict[int, str] = field(default_factory=dict)
    calls: int = 0  # that got a reply
    cached: int = 0  # answers for which nothing had to be asked: known, or the same as another's
    seconds: float = 0.0
    tokens: tuple[int, int] = (0, 0)  # in prompts, in replies, of the calls alone

    def log(self, name: str, served: Served, log_metric: Callable[[str, float], None]) -> None:
        """Log what it took."""
        log_metric(f"{name}/calls", self.calls)
        log_metric(f"{name}/cached", self.cached)
        log_metric(f"{name}/failed", len(self.failures))
        log_metric(f"{name}/seconds", self.seconds)
        log_metric(f"{name}/tokens", sum(self.tokens))
        if served.price is not None:
            costs = (price * tokens / _MILLION for price, tokens in zip(served.price, self.tokens, strict=True))
            log_metric(f"{name}/cost", sum(costs))

    def check(self, place: str, address: str) -> None:
        """Raises OwnError, one line, if too many requests failed."""
        if len(self.failures) > _TOO_MANY * len(self.found):
            some = next(iter(self.failures.values()))
            count = f"{len(self.failures)} of {len(self.found)} answers"
            raise OwnError(f"{place}: {address} gave no score for {count}; for one: {some}")


async def ask(place: str, served: Served, path: str, bodies: list[dict[str, Any]]) -> Asked:
    """Send each body to the `path` below the server's address, `parallel` of them at once; equal ones once.

    Nothing more is sent once so many have failed that the run has to wait. Raises OwnError if there is no key.
    """
    asked, secret, url = Asked([None] * len(bodies)), served.secret(place), f"{served.address}/{path}"
    keys = [replies.key_of(url, body) for body in bodies]
    known = replies.known(keys)
    new = {key: body for key, body in zip(keys, bodies, strict=True) if key not in known}
    asked.cached = len(bodies) - len(new)
    failed, fresh = dict[str, str](), dict[str, Any]()
    begun, turn = time.monotonic(), asyncio.Semaphore(served.parallel)
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    limits = httpx2.Limits(max_connections=served.parallel)  # none waits for another's connection
    async with httpx2.AsyncClient(headers=headers, timeout=None, limits=limits) as client:  # `_Server` has the time
        server = _Server(client, url, served, secret)

        async def one(key: str, body: dict[str, Any]) -> None:
            async with turn:
                if sum(keys.count(each) for each in failed) > _TOO_MANY * len(keys):
                    failed[key] = "not asked, as others had failed"
                    return
                try:
                    fresh[key] = await server.reply(body)
                    asked.calls += 1
                except _NoReplyError as error:
                    failed[key] = str(error)

        await asyncio.gather(*(one(key, body) for key, body in new.items()))
    replies.keep(fresh)
    asked.seconds = time.monotonic() - begun if new else 0.0
    asked.tokens = _tokens(fresh.values(), "prompt_tokens"), _tokens(fresh.values(), "completion_tokens")
    for number, key in enumerate(keys):
        if key in failed:
            asked.failures[number] = failed[key]
        else:
            asked.found[number] = known[key] if key in known else fresh[key]
    return asked


def _tokens(given: Iterable[dict[str, Any]], name: str) -> int:
    """How many tokens the replies say that they took; what is no such number counts for nothing."""
    used = (each["usage"].get(name) for each in given if isinstance(each["usage"], dict))
    return sum(count for count in used if type(count) is int and 0 <= count <= _MOST_TOKENS)


class _NoReplyError(Exception):
    """Why a request got no reply: one line."""


@dataclass(frozen=True)
class _Server:
    """Whom all requests go to. What it says is shown without the key, which it may repeat."""

    client: httpx2.AsyncClient
    url: str
    served: Served
    secret: str

    async def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """What the server sends. Raises _NoReplyError once trying again does not help."""
        for left in range(self.served.retries, -1, -1):
            wait = _BACKOFF * 2 ** (self.served.retries - left)
            try:
                status, headers, content = await self._sent(body)
            except TimeoutError:
                problem = f"no reply within {self.served.seconds:g} s"
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                problem = self._line(f"{type(error).__name__}: {error}")
            else:
                if status == httpx2.codes.OK:
                    return _content(content)
                problem = self._line(f"HTTP {status}: {content.decode(errors='replace')}")
                if status not in _AGAIN and status < httpx2.codes.INTERNAL_SERVER_ERROR:
                    raise _NoReplyError(problem)
                asks = headers.get("Retry-After", "")
                wait = min(float(asks), _LONGEST_WAIT) if asks.isascii() and asks.isdecimal() else wait
            if left:
                await asyncio.sleep(wait)
        raise _NoReplyError(problem)

    async def _sent(self, body: dict[str, Any]) -> tuple[int, httpx2.Headers, bytes]:
        """Status, headers and content of the reply to one request. Raises TimeoutError if it is not all there in time.

        The time is of the whole request: a server that sends a byte now and then would hold it for ever.
        """
        content = bytearray()
        async with (
            asyncio.timeout(self.served.seconds),
            self.client.stream("POST", self.url, json=body) as response,
        ):
            async for part in response.aiter_bytes():
                content += part
                if len(content) > _LONGEST:
                    raise _NoReplyError(f"the reply has more than {_LONGEST:,} bytes")
            return response.status_code, response.headers, bytes(content)

    def _line(self, text: str) -> str:
        hidden = text.replace(self.secret, f"${self.served.key}") if self.secret else text
        return visible(brief(" ".join(hidden.split())))


def _content(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise _NoReplyError("the reply is not JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("choices"), list) or not found["choices"]:
        raise _NoReplyError("the reply has no choices; does the address end in /v1?")
    return {"choices": found["choices"][:1], "usage": found.get("usage")}
