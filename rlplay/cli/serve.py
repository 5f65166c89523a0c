"""The playground in this machine's browsers, by textual-serve.

Every tab is a separate playground with its own engine; closing the tab ends both. Whoever plays can run code, so the
port is open on 127.0.0.1 only, and requests from other pages are refused. So are those without the token in the
address, because every user of this machine can reach the port.
"""

from __future__ import annotations

import hmac
import html
import secrets
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence

import aiohttp_jinja2
import jinja2
from aiohttp import web
from textual_serve.server import Server

HOST = "127.0.0.1"
_SOCKET = "/ws"
TABS = 8
"""The most tabs at once: each has an engine, which takes about half a gigabyte of memory."""

_HEAD = """\
    <title>{title}</title>
    <style>
      html, body {{ margin: 0; overflow: hidden; }}
      .intro svg {{ display: none; }}
    </style>
    <script>
      function focusTerminal() {{
        const keyboard = document.querySelector(".xterm-helper-textarea");
        if (keyboard) keyboard.focus(); else setTimeout(focusTerminal, 50);
      }}
      window.addEventListener("load", focusTerminal);
    </script>
  </head>"""
"""What textual-serve's page lacks: a title, keys that work before a click, and a frame without a scrollbar."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PlaygroundServer(Server):
    """One process of `rlplay SCENARIO` for each tab."""

    def __init__(self, words: Sequence[str], port: int) -> None:
        """`port` is already bound; `words` are what comes after `rlplay` on a command line."""
        self.scenario = words[0]
        self._tabs = 0
        self._token = secrets.token_urlsafe(32)
        command = shlex.join([sys.executable, "-P", "-m", "rlplay", *words])
        super().__init__(command, HOST, port, f"rlplay · {self.scenario}")
        # textual-serve's page would load its font from Google; this page uses a local one.
        self._policy = (
            f"default-src 'self' 'unsafe-inline' data: blob:; connect-src 'self' ws://{HOST}:{port}; "
            "frame-ancestors 'none'"
        )

    @property
    def address(self) -> str:
        """Where the playground is, with the token."""
        return f"{self.public_url}/?token={self._token}"

    async def on_startup(self, app: web.Application) -> None:  # noqa: ARG002 - textual-serve's signature
        """Print the address, in a line."""
        print(f"{self.scenario}: {self.address} · each tab is a separate run · ctrl+c ends all", flush=True)

    async def application(self) -> web.Application:
        """The pages and the socket of textual-serve, for pages of this playground only."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.host == f"localhost:{self.port}":
                raise web.HTTPFound(self.public_url + request.path_qs)
            origins = f"http://{request.host}", request.headers.get("Origin", self.public_url)
            if set(origins) != {self.public_url}:
                raise web.HTTPForbidden(text=f"this playground is at {self.public_url}, for this machine only\n")
            self._check_token(request)
            response = await self._answered(request, handler)
            if request.path == "/" and isinstance(response, web.Response) and response.text is not None:
                head = _HEAD.format(title=html.escape(self.title))
                socket = f"ws://{HOST}:{self.port}{_SOCKET}"
                # The page appends its size, ?width=…, so the token is part of the path.
                response.text = response.text.replace("</head>", head, 1).replace(socket, f"{socket}/{self._token}", 1)
            if not response.prepared:
                response.headers["Content-Security-Policy"] = self._policy
                # A page in the browser's back-forward cache would keep its engine alive.
                response.headers["Cache-Control"] = "no-store"
            return response

        app = web.Application(middlewares=[guarded])
        aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(self.templates_path))
        app.router.add_get("/", self.handle_index, name="index")
        app.router.add_get(_SOCKET, self.handle_websocket, name="websocket")
        app.router.add_get(f"{_SOCKET}/{{token}}", self.handle_websocket)
        app.router.add_get("/download/{key}", self.handle_download, name="download")
        app.router.add_static("/static", self.statics_path, name="static")
        app.on_startup.append(self.on_startup)
        return app

    def _check_token(self, request: web.Request) -> None:
        """Refuse a request for the page or the socket that does not have the token of this start."""
        if request.path == "/" or request.path.startswith(_SOCKET):
            given = request.query.get("token", "") if request.path == "/" else request.match_info.get("token", "")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                raise web.HTTPForbidden(text="open the whole address that 'rlplay serve' has printed, token included\n")

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The answer to a request of this playground's pages; the socket of a tab is answered as long as it is open."""
        tab = request.path.startswith(_SOCKET)
        if (tab or request.path == "/") and self._tabs >= TABS:
            raise web.HTTPServiceUnavailable(text=f"{TABS} tabs are open, as many as can be; close one and try again\n")
        self._tabs += tab
        try:
            return await handler(request)
        finally:
            self._tabs -= tab


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
    server = PlaygroundServer(words, sock.getsockname()[1])
    web.run_app(server.application(), sock=sock, print=None, shutdown_timeout=1)
