"""A running sidecar's socket, handled as the two ends of a pipe are."""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import Any

from ._endpoint import Endpoint
from ._errors import MnemError, ProtocolError, SidecarError
from ._outbox import Outbox
from ._transport import Transport

_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
"""A program may have given SIGPIPE its deadly meaning back; a server that went away must not end it."""
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""Within about a minute a peer that vanished without a word counts as gone, where the system can do so."""


class SocketTransport(Transport):
    """One socket, connected or about to be. The writing side has a file descriptor of its own."""

    def __init__(self, endpoint: Endpoint, family: int) -> None:
        """Make the socket, without connecting it.

        Raises:
            OSError: There can be none.
        """
        self._endpoint = endpoint
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setblocking(False)
            if endpoint.transport != "unix":
                _set_tcp_options(self._socket)
            self._out = self._socket.dup()
        except OSError:
            self._socket.close()
            raise
        self._finished = False
        self._first = b""
        self.cut: OSError | None = None
        """By which error it ended, if not in order."""
        self.outbox = self._new_outbox()

    def connect(self, address: Any) -> int:
        """Begin to connect; 0, `EINPROGRESS` or what went wrong."""
        return self._socket.connect_ex(address)

    def connected(self) -> int:
        """What came of it, once the writing end is ready: 0, or what went wrong."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    @property
    def reading(self) -> int:
        """The socket's own file descriptor."""
        return self._socket.fileno()

    @property
    def writing(self) -> int:
        """The second file descriptor."""
        return -1 if self._finished else self._out.fileno()

    def read(self, size: int) -> bytes | None:
        """Receive what is there; how it ended is in `cut`."""
        return self.receive(size)

    def receive(self, size: int) -> bytes | None:
        """Receive bytes as they come over the socket: `b""` at the end, None when there are none yet."""
        try:
            chunk = self._socket.recv(size)
        except BlockingIOError:
            return None
        except OSError as error:
            self.cut = error
            return b""
        self._first = self._first or chunk[:8]
        return chunk

    def write(self, data: memoryview | bytes) -> int:
        """Send what is taken now.

        Raises:
            OSError: Nothing is; `BlockingIOError` if only now.
        """
        return self._out.send(data, _NO_SIGNAL)

    def offer(self, data: bytes) -> bytes:
        """Send what is taken now, and return the rest; none once nobody reads: what was said is read then."""
        try:
            return data[self.write(data) :] if data else data
        except BlockingIOError:
            return data
        except OSError:
            return b""

    def finish_writing(self) -> None:
        """Half-close: the server answers what it took, and closes."""
        self._finished = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def force(self) -> None:
        """Give the connection up, both ways."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close both file descriptors."""
        self._finished = True
        self._socket.close()
        self._out.close()

    def disown(self) -> None:
        """In a forked child: close, and never shut down, which the parent's connection would feel."""
        self.close()

    def story(self) -> str:
        """How it ended, as the rest of a sentence about the sidecar."""
        if self.cut is None:
            return "closed the connection"
        return f"was cut off ({self.cut.strerror or self.cut})"

    def misread(self, reason: str, opened: bool) -> MnemError:
        """Before `initialize` was answered it is no sidecar at all, and what it said hints at what it is."""
        if opened:
            return ProtocolError(f"the sidecar at {self._endpoint} sent something else than frames: {reason}")
        return not_ours(self._endpoint, self._first, reason)

    def _new_outbox(self) -> Outbox:
        return Outbox(self.write)


def not_ours(endpoint: Endpoint, first: bytes, reason: str) -> SidecarError:
    """The error for something that answers at the endpoint and doesn't speak the protocol."""
    if endpoint.transport != "tls" and first[:2] in _TLS_RECORDS:
        return SidecarError(
            f"what answers at {endpoint} speaks TLS; if it is the sidecar, use {endpoint.over('tls')}"
        )
    what = "a web server" if first.startswith(b"HTTP/") else "something"
    return SidecarError(
        f"{what} answers at {endpoint}, which is no mnem-sidecar ({reason}); give the address that "
        "`mnem-sidecar serve --listen` has"
    )


def _set_tcp_options(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        option = getattr(socket, name, None)
        if option is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, option, value)


IN_PROGRESS = (errno.EINPROGRESS, errno.EINTR)
"""What `connect` says while it is under way."""
