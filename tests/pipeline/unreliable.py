"""A proxy before an object store, which refuses or drops some requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import urlsplit

_SLOW_DOWN: Final = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
_TIMEOUT: Final = 30.0

# What becomes of a request, by its method and path: None if it is answered.
REFUSED: Final = "refused"
DROPPED: Final = "dropped"
# The store gets it, and its answer is lost.
UNANSWERED: Final = "unanswered"
Fate = Callable[[str, str], str | None]


@contextmanager
def unreliable(endpoint: str, fate: Fate) -> Iterator[str]:
    """The address of a proxy, which runs until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _TIMEOUT

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            fault = fate(self.command, self.path)
            self.close_connection = True
            if fault == DROPPED:
                return
            if fault == REFUSED:
                self._answer(503, _SLOW_DOWN, {"Content-Type": "application/xml"})
                return
            store = HTTPConnection(urlsplit(endpoint).netloc, timeout=_TIMEOUT)
            store.request(self.command, self.path, body, dict(self.headers))
            answer = store.getresponse()
            content = answer.read()
            if fault != UNANSWERED:
                self._answer(answer.status, content, dict(answer.headers))

        def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                    self.send_header(name, value)
            length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
