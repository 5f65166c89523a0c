"""The playground in a browser, by textual-serve: this machine's browsers and no others.

Every tab is a separate playground with its own engine; both end with it. Whoever reaches the port could play, so
the port is only open on 127.0.0.1, and a page from elsewhere that sends the browser here is turned away.
"""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web
from textual_serve.server import Server

HOST = "127.0.0.1"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Playground(Server):
    """One process of `rlplay SCENARIO` for each tab."""

    def __init__(self, words: Sequence[str], port: int) -> None:
        """On a `port` that is bound already; `words` are what comes after `rlplay` on a command line."""
        self.scenario = words[0]
        command = shlex.join([sys.executable, "-m", "rlplay", *words])
        super().__init__(command, HOST, port, f"rlplay · {self.scenario}")
        # textual-serve's page asks Google for its font; this machine's own has to do.
        self._policy = (
            f"default-src 'self' 'unsafe-inline' data: blob:; connect-src 'self' ws://{HOST}:{port}; "
            "frame-ancestors 'none'"
        )

    async def on_startup(self, app: web.Application) -> None:  # noqa: ARG002 - the signature is theirs
        """Say where it is, in a line."""
        print(f"{self.scenario}: {self.public_url} · each tab is a separate run · ctrl+c ends all", flush=True)

    async def application(self) -> web.Application:
        """textual-serve's pages and socket, for this machine's own pages only."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.host == f"localhost:{self.port}":
                raise web.HTTPFound(self.public_url)
            asker = f"http://{request.host}", request.headers.get("Origin", self.public_url)
            if set(asker) != {self.public_url}:
                raise web.HTTPForbidden(text=f"this playground is at {self.public_url}, for this machine only\n")
            response = await handler(request)
            if not response.prepared:
                response.headers["Content-Security-Policy"] = self._policy
                # A page that a browser keeps for its back button would keep its engine, too.
                response.headers["Cache-Control"] = "no-store"
            return response

        app = await self._make_app()
        app.middlewares.append(guarded)
        return app


def bound(port: int) -> socket.socket:
    """A socket on the loopback `port`, 0 for any that is free. Raises ValueError, one line, if it is taken."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
        sock.listen()
    except OSError as error:
        sock.close()
        raise ValueError(f"port {port} is not available ({error.strerror}); choose another with --port") from None
    return sock


def serve(words: Sequence[str], port: int) -> None:
    """Serve `rlplay` with these words, the scenario first, until ctrl+c or SIGTERM.

    Raises ValueError, one line, if the port is taken.
    """
    sock = bound(port)
    server = Playground(words, sock.getsockname()[1])
    web.run_app(server.application(), sock=sock, print=None, shutdown_timeout=1)
