"""How a running sidecar is reached: names resolved, sockets connected, TLS agreed on, all without blocking.

Everything happens on the connection's thread, which hears meanwhile when it is not wanted any more.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ._endpoint import Endpoint
from ._errors import SidecarError
from ._settings import find_token
from ._socket import IN_PROGRESS, SocketTransport
from ._tls import TlsTransport, make_context, refusal
from ._transport import Abandoned, Opening, Outcome, Transport, Unreached

_PASSING = ("busy", "shutting_down", "not_initialized")
"""Kinds of error with which a server turns a client away that may come again. The last one tells a client
that was too slow to introduce itself."""
_FORBIDDEN = (errno.EACCES, errno.EPERM)
_CHUNK = 1 << 16

_Address = tuple[int, Any]
"""A socket's family, and its address there."""


@dataclass(slots=True)
class EndpointRoute:
    """A sidecar that somebody else runs.

    Args:
        endpoint: Where it listens.
        explicit_token: What to show; None for what the environment says at each attempt.
        patience: How many seconds a call waits for it.
    """

    endpoint: Endpoint
    explicit_token: str | None = field(repr=False)
    patience: float

    @property
    def where(self) -> str:
        """The rest of "the sidecar …"."""
        return f"at {self.endpoint}"

    @property
    def start_seconds(self) -> float:
        """One attempt may take all the time: a server that is only slow answers in the end."""
        return self.patience

    def token(self) -> str | None:
        """What to show; a file is read each time, so that its token can be changed under way."""
        return find_token(self.explicit_token)

    def open(self, opening: Opening, deadline: float) -> Transport:
        """Connect to it; see `Route`."""
        endpoint = self.endpoint
        make: Callable[[int], SocketTransport] = lambda family: SocketTransport(endpoint, family)  # noqa: E731
        if endpoint.transport == "tls":
            context = make_context()
            make = lambda family: TlsTransport(endpoint, family, context)  # noqa: E731
        if endpoint.transport == "unix":
            addresses: list[_Address] = [(socket.AF_UNIX, endpoint.path)]
        else:
            addresses = self._resolve(opening, deadline)
        failure = Unreached("has no address")
        for position, (family, address) in enumerate(addresses):
            # None of several addresses may use up all the time.
            now = time.monotonic()
            share = now + (deadline - now) / (len(addresses) - position)
            try:
                transport = self._connect(opening, make, family, address, share)
                if isinstance(transport, TlsTransport):
                    self._shake(opening, transport, share)
            except Unreached as error:
                failure = error
            else:
                opening.stage("took the connection, and has not answered `initialize`")
                return transport
        raise failure

    def unanswered(self, session: Outcome) -> Exception:
        """Why a session came to nothing: most reasons pass, a refusal of this client does not."""
        if session.timed_out:
            return Unreached(f"took the connection, and did not answer within {self.start_seconds:g} s")
        fault = session.fault
        if fault is not None:
            return Unreached(f"answered: {fault}") if fault.kind in _PASSING else fault
        transport = session.transport
        cut = transport.cut if isinstance(transport, SocketTransport) else None
        if cut is None:
            return Unreached("closed the connection before it answered `initialize`")
        if isinstance(cut, ssl.SSLError):
            return SidecarError(refusal(self.endpoint, cut))
        return Unreached(f"cut the connection before it answered `initialize` ({cut.strerror or cut})")

    def advice(self) -> str:
        """What to look at."""
        listen, transport = self.endpoint.listen, self.endpoint.transport
        if transport == "unix":
            return f"Is `mnem-sidecar serve --listen {listen}` running, and that path shared with it?"
        text = f"Is `mnem-sidecar serve` running with --listen {listen}, and can this machine reach it?"
        if transport == "tcp":
            return f"{text} If it listens with TLS, the endpoint is {self.endpoint.over('tls')}."
        return f"{text} If it asks for client certificates, set MNEM_TLS_CERT and MNEM_TLS_KEY."

    def _resolve(self, opening: Opening, deadline: float) -> list[_Address]:
        host, port = self.endpoint.host, self.endpoint.port
        with contextlib.suppress(socket.gaierror):
            return _look_up(host, port, socket.AI_NUMERICHOST)
        # The system's own look-up can't be interrupted, nor given a bound: it gets a thread, which is left
        # alone when the wait is over.
        opening.stage("has a host name that is not resolved yet")
        found: list[_Address] = []
        failed: list[Exception] = []
        done = threading.Event()

        def look_up() -> None:
            try:
                found.extend(_look_up(host, port, 0))
            except (OSError, UnicodeError) as error:
                failed.append(error)
            finally:
                done.set()
                opening.wake.wake()

        try:
            threading.Thread(target=look_up, name="mnem-resolve", daemon=True).start()
        except RuntimeError as error:
            raise Abandoned from error  # The interpreter is ending.
        while not done.is_set():
            _wait(opening, deadline, "has a host name that was not resolved in time")
        if failed:
            reason = getattr(failed[0], "strerror", None) or failed[0]
            raise Unreached(f"has a host name that can't be resolved ({reason})") from failed[0]
        return found

    def _connect(
        self,
        opening: Opening,
        make: Callable[[int], SocketTransport],
        family: int,
        address: Any,
        deadline: float,
    ) -> SocketTransport:
        opening.stage("does not take the connection")
        try:
            transport = opening.adopt(lambda: make(family))
            number = transport.connect(address)
        except OSError as error:
            raise self._failure(error.errno or 0, str(error.strerror or error)) from error
        if number in IN_PROGRESS:
            while not _wait(
                opening, deadline, "did not take the connection in time", transport.writing, write=True
            ):
                pass
            number = transport.connected()
        if number != 0:
            raise self._failure(number, os.strerror(number))
        return transport

    def _failure(self, number: int, reason: str) -> Exception:
        endpoint = self.endpoint
        if number in _FORBIDDEN:
            fix = (
                "let this user write to the socket and enter its directory (`mnem-sidecar serve "
                "--socket-mode 0660` lets the socket's group in)"
                if endpoint.transport == "unix"
                else "something on this machine, such as a firewall, forbids it"
            )
            return SidecarError(f"this process may not connect to {endpoint} ({reason}): {fix}")
        if number == errno.ENOENT:
            return Unreached("has no socket there")
        if number == errno.ECONNREFUSED:
            listens = (
                "is a socket on which nobody listens" if endpoint.transport == "unix" else "does not listen"
            )
            return Unreached(f"{listens} ({reason})")
        return Unreached(f"can't be connected to ({reason})")

    def _shake(self, opening: Opening, transport: TlsTransport, deadline: float) -> None:
        opening.stage("took the connection, and does not go on with the TLS handshake")
        late = "took the connection, and did not finish the TLS handshake in time"
        while True:
            done, rest = transport.shake()
            while rest := transport.offer(rest):
                _wait(opening, deadline, late, transport.writing, write=True)
            if done:
                return
            while (chunk := transport.receive(_CHUNK)) is None:
                _wait(opening, deadline, late, transport.reading)
            if not chunk:
                cut = transport.cut
                reason = "" if cut is None else f" ({cut.strerror or cut})"
                raise Unreached(f"closed the connection during the TLS handshake{reason}")
            transport.hear(chunk)


def _look_up(host: str, port: int, flags: int) -> list[_Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(int(family), address) for family, _, _, _, address in found]


def _wait(
    opening: Opening, deadline: float, late: str, fd: int | None = None, *, write: bool = False
) -> bool:
    """Wait for `fd`, or a wake-up, which makes it False.

    Raises:
        Abandoned: An end is wanted.
        Unreached: The deadline has passed, told by `late`.
    """
    if opening.wish.ending:
        raise Abandoned
    left = deadline - time.monotonic()
    if left <= 0:
        raise Unreached(late)
    return opening.wake.wait(left, fd, selectors.EVENT_WRITE if write else selectors.EVENT_READ)
