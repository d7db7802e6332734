"""Servers to connect to: the real one as a process of its own, and one that does as a test tells it."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mnem_autogen import _program
from support import PATIENCE

LIMITS = {"frame_bytes": 2**25, "item_bytes": 2**23, "items_per_add": 10_000}
EMPTY: dict[str, Any] = {
    "commit": None,
    "epoch": 0,
    "branch": "main",
    "count": 0,
    "mode": "full",
    "items": [],
}


class Peer:
    """One connection as the scripted server sees it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._stream = sock.makefile("rb")

    def read(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        length = 0
        while line := self._stream.readline().strip():
            length = int(line.rpartition(b":")[2])
        body = self._stream.read(length) if length else b""
        return json.loads(body) if body else None

    def send(self, message: object) -> None:
        body = json.dumps(message).encode()
        self.sock.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def answer(self, request: dict[str, Any] | None, result: object) -> None:
        assert request is not None
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def refuse(self, kind: str, message: str, number: object = None) -> None:
        error = {"code": -32017, "message": message, "data": {"kind": kind, "retryable": kind == "busy"}}
        self.send({"jsonrpc": "2.0", "id": number, "error": error})

    def initialize(self) -> dict[str, Any]:
        """Read `initialize`, answer it, and return its parameters."""
        request = self.read()
        self.answer(request, {"protocol": 1, "limits": LIMITS})
        assert request is not None
        return request["params"]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self._stream.close()
        self.sock.close()


Script = Callable[[Peer], None]


def serve_empty(peer: Peer) -> None:
    """Be a server of empty memories, in order, until the client ends."""
    peer.initialize()
    while (request := peer.read()) is not None:
        if "id" in request:
            peer.answer(request, {**EMPTY, "ids": []})


class FakeServer:
    """Does one script for each connection; the last one for all that come after."""

    def __init__(
        self, listener: socket.socket, scripts: Sequence[Script], tls: ssl.SSLContext | None
    ) -> None:
        self._listener = listener
        self._scripts = scripts
        self._tls = tls
        self._peers: list[Peer] = []
        self._threads: list[threading.Thread] = []
        self.port: int = listener.getsockname()[1] if listener.family != socket.AF_UNIX else 0
        self.count = 0
        """Connections taken."""
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        # Closing alone does not wake a thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE)
        for peer in self._peers:
            with contextlib.suppress(OSError):
                peer.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                script = self._scripts[min(self.count, len(self._scripts) - 1)]
                self.count += 1
                thread = threading.Thread(target=self._talk, args=(sock, script), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _talk(self, sock: socket.socket, script: Script) -> None:
        # A client goes away whenever it likes, and most scripts make it do so.
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(sock.close)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
            peer = Peer(sock)
            stack.callback(peer.close)
            self._peers.append(peer)
            script(peer)


@contextlib.contextmanager
def fake_server(
    *scripts: Script, path: Path | None = None, tls: ssl.SSLContext | None = None
) -> Generator[FakeServer]:
    """A scripted server on a port of its own, or on a Unix socket at `path`."""
    if path is not None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
    else:
        listener = socket.create_server(("127.0.0.1", 0))
    server = FakeServer(listener, scripts, tls)
    try:
        yield server
    finally:
        server.stop()


def free_port() -> int:
    """A port on which nobody listened just now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server:
    """The real server. It is started again with the same addresses and store after it was ended."""

    def __init__(self, directory: Path, *options: object) -> None:
        self.path = directory / "mnem.sock"
        self.port = free_port()
        self.store = directory / "store"
        self._options = [str(option) for option in options]
        self._log = directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def unix(self) -> str:
        return f"unix://{self.path}"

    @property
    def tcp(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def tls(self) -> str:
        return f"tls://localhost:{self.port}"

    @property
    def log(self) -> str:
        return self._log.read_text()

    def start(self, *listen: str) -> None:
        """Start it, and don't wait for it: that is the client's part."""
        addresses = listen or (f"unix:{self.path}",)
        command = [*_command(), "serve", "--store", str(self.store), *self._options]
        for address in addresses:
            command += ["--listen", address]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def start_tcp(self) -> None:
        self.start(f"tcp:127.0.0.1:{self.port}")

    def start_tls(self) -> None:
        self.start(f"tls:127.0.0.1:{self.port}")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)
        self._process = None

    def stop(self) -> None:
        """Have it end in order, if it runs."""
        if self._process is not None:
            self._process.terminate()
            assert self._process.wait(PATIENCE) == 0, self.log
            self._process = None


@contextlib.contextmanager
def real_server(directory: Path, *options: object) -> Generator[Server]:
    """A server that is not started yet, and ended in any case."""
    server = Server(directory, *options)
    try:
        yield server
    finally:
        server.stop()


def new_token(file: Path, name: str, *rules: str) -> str:
    """Have the server's own command make a token in `file`."""
    arguments = rules or ("--memory", "*", "--verb", "read", "--verb", "write")
    command = [*_command(), "token", "new", "--file", str(file), "--name", name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return next(word for word in done.stdout.split() if word.startswith("mnem_"))


def revoke_token(file: Path, name: str) -> None:
    subprocess.run(
        [*_command(), "token", "revoke", "--file", str(file), "--name", name], capture_output=True, check=True
    )


def _command() -> list[str]:
    program = _program.find_program()
    return [program.node, program.entry]


@dataclass(frozen=True)
class Certificates:
    """Files in PEM: a CA, and a certificate for localhost and 127.0.0.1 that it signed."""

    ca: Path
    cert: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        return context


def make_certificates(directory: Path) -> Certificates:
    """Made by `openssl`; a test that needs them is skipped where there is none."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here to make certificates with")
    made = Certificates(directory / "ca.pem", directory / "cert.pem", directory / "key.pem")
    ca_key, request, extensions = (directory / name for name in ("ca-key.pem", "request.pem", "extensions"))
    extensions.write_text(
        "basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n"
        "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
        "subjectAltName=DNS:localhost,IP:127.0.0.1\n"
    )
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    ca = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"]
    by_ca = ["-CA", str(made.ca), "-CAkey", str(ca_key), "-CAcreateserial", "-extfile", str(extensions)]
    for arguments in (
        [*("req", "-x509", *key), "-subj", "/CN=CA of a test", *ca, "-keyout", ca_key, "-out", made.ca],
        [*("req", *key), "-subj", "/CN=localhost", "-keyout", made.key, "-out", request],
        [*("x509", "-req", *by_ca), "-in", request, "-out", made.cert, "-days", "2"],
    ):
        subprocess.run([openssl, *map(str, arguments)], check=True, capture_output=True)
    return made
