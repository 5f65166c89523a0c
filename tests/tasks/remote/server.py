"""A server with OpenAI's API for tests: it answers as a function says, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], tuple[int, Any]]
"""A status and a reply to the body of a request: JSON, bytes, or an iterator of bytes that may never end."""

_LONG = 10**6
"""Bytes that are promised of an iterator."""


class Server:
    """What it was asked: the paths, the bodies and the headers of requests; and how many were open at once."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.paths, self.bodies, self.headers = list[str](), list[dict[str, Any]](), list[dict[str, str]]()
        self.open = self.most_open = 0
        self.lock = threading.Lock()
        self.address = ""


@contextmanager
def serving(answer: Answer) -> Iterator[Server]:
    """A server on this machine while the context lasts."""
    server = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                server.paths.append(self.path)
                server.bodies.append(body)
                server.headers.append(dict(self.headers))
                server.open += 1
                server.most_open = max(server.most_open, server.open)
            status, reply = server.answer(body)
            content = [reply] if isinstance(reply, bytes) else reply
            if not isinstance(content, (list, Iterator)):
                content = [json.dumps(reply).encode()]
            with server.lock:
                server.open -= 1
            self.send_response(status)
            length = sum(map(len, content)) if isinstance(content, list) else _LONG
            self.send_header("Content-Length", str(length))
            self.end_headers()
            with suppress(ConnectionError):  # it was given up
                self.wfile.writelines(content)

        def log_message(self, *_: object) -> None:
            pass

    class Http(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 200

    http = Http(("127.0.0.1", 0), Handler)
    server.address = f"http://127.0.0.1:{http.server_address[1]}/v1"
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def said(text: str, usage: tuple[int, int] = (10, 2)) -> tuple[int, Any]:
    """A chat completion."""
    used = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return 200, {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": used}
