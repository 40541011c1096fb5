"""A proxy before an object store, which fails the first try of some requests.

It is a program, ``python -m tests.pipeline.unreliable ENDPOINT FAULT PATTERN``: a thread of the tests would
wait for calls of deltalake, which wait for the proxy.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

# The store refuses the request, because it has too much to do.
REFUSED: Final = "refused"
# The connection ends before the store has the request.
DROPPED: Final = "dropped"
# The store does what is requested, and its answer is lost.
UNANSWERED: Final = "unanswered"
_SLOW_DOWN: Final = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
_OF_A_CONNECTION: Final = ("connection", "content-length", "expect", "transfer-encoding")
# Seconds.
_TIMEOUT: Final = 30.0


@contextmanager
def unreliable(endpoint: str, fault: str, pattern: str = "") -> Iterator[str]:
    """The address of a proxy, which runs until the block ends.

    The first try of a request has the fault, if the method and the path of the request match the pattern.
    """
    command = [sys.executable, "-m", "tests.pipeline.unreliable", endpoint, fault, pattern]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        try:
            yield proxy.stdout.readline().strip()
        finally:
            proxy.kill()


class _Proxy(ThreadingHTTPServer):
    def __init__(self, endpoint: str, fault: str, pattern: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store = urlsplit(endpoint).netloc
        self._fault = fault
        self._pattern = re.compile(pattern)
        self._tried: set[str] = set()

    def fault_of(self, request: str) -> str | None:
        if request in self._tried or not self._pattern.search(request):
            return None
        self._tried.add(request)
        return self._fault


class _Handler(BaseHTTPRequestHandler):
    server: _Proxy
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT

    def handle_one_request(self) -> None:
        self.close_connection = True
        self.raw_requestline = self.rfile.readline()
        if not self.raw_requestline or not self.parse_request():
            return
        # This sets it again.
        self.close_connection = True
        body = b"".join(self._body())
        fault = self.server.fault_of(f"{self.command} {self.path}")
        if fault == DROPPED:
            return
        if fault == REFUSED:
            self._answer(503, _SLOW_DOWN, Message())
            return
        store = HTTPConnection(self.server.store, timeout=_TIMEOUT)
        store.request(self.command, self.path, body, _of_the_request(self.headers))
        answer = store.getresponse()
        content = answer.read()
        if fault != UNANSWERED:
            self._answer(answer.status, content, answer.headers)

    def _body(self) -> Iterator[bytes]:
        if self.headers.get("Transfer-Encoding") != "chunked":
            yield self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _answer(self, status: int, content: bytes, headers: Message) -> None:
        self.send_response_only(status)
        length = headers.get("Content-Length") if self.command == "HEAD" else None
        for name, value in _of_the_request(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)


def _of_the_request(headers: Message) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OF_A_CONNECTION}


if __name__ == "__main__":
    with _Proxy(*sys.argv[1:]) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
