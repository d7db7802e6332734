"""A running sidecar's socket with TLS: sealed under the outbox's lock, opened on the connection's thread."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from typing import Any, cast

from ._endpoint import Endpoint
from ._errors import MnemError, SidecarError, from_wire
from ._frames import FrameError, FrameReader
from ._json import loads
from ._outbox import Outbox
from ._socket import SocketTransport, not_ours
from ._transport import Unreached

_PIECE = 1 << 18
_RECORD_TYPES = range(0x14, 0x18)
_PASSING = ("busy", "shutting_down")


class TlsTransport(SocketTransport):
    """A socket on which nothing but TLS records goes. `shake` to the end before anything else."""

    def __init__(self, endpoint: Endpoint, family: int, context: ssl.SSLContext) -> None:
        """Make the socket, without connecting it.

        Raises:
            OSError: There can be none.
        """
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        # A scope (fe80::1%eth0) says which way to take and is in no certificate.
        host = endpoint.host.partition("%")[0]
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._met = False
        self._ended = False
        super().__init__(endpoint, family)

    def shake(self) -> tuple[bool, bytes]:
        """Go on with the handshake: whether it is done, and what to send before it can go on.

        Raises:
            SidecarError: This server and this client can't agree.
        """
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False, self._outgoing.read()
        except ssl.SSLCertVerificationError as error:
            self._say_farewell()
            raise SidecarError(
                f"the certificate of {self._endpoint} could not be verified ({error.verify_message}); set "
                "MNEM_TLS_CA to a file with the certificate of the CA that signed it, and see that it is for "
                "the host in the endpoint"
            ) from error
        except ssl.SSLError as error:
            self._say_farewell()
            raise SidecarError(refusal(self._endpoint, error)) from error
        return True, self._outgoing.read()

    def hear(self, chunk: bytes) -> None:
        """Take a part of the server's side of the handshake.

        Raises:
            SidecarError: It speaks no TLS.
            Unreached: It speaks none, but only because it has no room for us.
        """
        if not self._met and chunk[0] not in _RECORD_TYPES:
            raise self._without_tls(chunk)
        self._met = True
        self._incoming.write(chunk)

    def read(self, size: int) -> bytes | None:
        """Receive and decrypt what is there; how it ended is in `cut`."""
        if self._ended:
            return b""
        raw = self.receive(size)
        if raw is None:
            return None
        pieces: list[bytes] = []
        # TLS may have something to answer to what it reads: sent as it is, and before anything sealed later.
        self.outbox.put_made(lambda: self._open(raw, pieces))
        if self._ended and pieces:
            # There is one more end to be read, also where the server has closed only what is inside.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RD)
        plain = b"".join(pieces)
        return plain if plain or self._ended else None

    def finish_writing(self) -> None:
        """Close the inside, then half-close the socket; what the server still answers is read."""
        self.outbox.put_made(self._close_inside)
        self._say_farewell()
        super().finish_writing()

    def _new_outbox(self) -> Outbox:
        return Outbox(self.write, self._seal)

    def _seal(self, frame: bytes) -> bytes:
        rest = memoryview(frame)
        while rest:
            rest = rest[self._tls.write(rest) :]
        return self._outgoing.read()

    def _open(self, raw: bytes, pieces: list[bytes]) -> bytes:
        if raw:
            self._incoming.write(raw)
        else:
            self._incoming.write_eof()
        try:
            while piece := self._tls.read(_PIECE):
                pieces.append(piece)
            self._ended = True
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._ended = True
        except ssl.SSLError as error:
            self._ended = True
            self.cut = error
        return self._outgoing.read()

    def _close_inside(self) -> bytes:
        # It wants to read the server's own end, which comes after all answers: that is for `read`.
        with contextlib.suppress(OSError, ValueError):
            self._tls.unwrap()
        return b""

    def _say_farewell(self) -> None:
        """Send a last record if there is room: an alert, or the end. A server does without it."""
        self.offer(self._outgoing.read())

    def _without_tls(self, chunk: bytes) -> Exception:
        error = _plain_error(chunk)
        if error is not None and error.kind in _PASSING:
            return Unreached(f"answered: {error}")
        if error is not None or chunk.startswith(b"Content-"):
            return SidecarError(
                f"the sidecar at {self._endpoint} speaks no TLS; use {self._endpoint.over('tcp')} where "
                "nobody can listen in, or have it listen with `--listen tls:…`"
            )
        return not_ours(self._endpoint, chunk[:8], f"it speaks no TLS: {chunk[:40]!a}")


def refusal(endpoint: Endpoint, error: ssl.SSLError) -> str:
    """The sentence for a TLS session that one side refused."""
    return (
        f"no TLS session with {endpoint} ({error.reason or error}); if it asks for a client certificate, set "
        "MNEM_TLS_CERT and MNEM_TLS_KEY to one that it accepts"
    )


def make_context() -> ssl.SSLContext:
    """How servers are verified and this client shows itself, by what the variables say now.

    Raises:
        SidecarError: A file that a variable names can't be used.
    """
    ca = os.environ.get("MNEM_TLS_CA") or None
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise _bad_file("MNEM_TLS_CA", f"{ca}", error, "CA certificates") from error
    context.options |= ssl.OP_NO_RENEGOTIATION  # So that writing never has to wait for something to be read.
    cert, key = os.environ.get("MNEM_TLS_CERT") or None, os.environ.get("MNEM_TLS_KEY") or None
    if cert is not None:
        try:
            # A password is never asked for: that would wait for somebody at a terminal.
            context.load_cert_chain(cert, key, password=lambda: "")
        except OSError as error:
            files = cert if key is None else f"{cert} and {key}"
            what = "a certificate chain and its private key without password"
            raise _bad_file("MNEM_TLS_CERT (with MNEM_TLS_KEY)", files, error, what) from error
    elif key is not None:
        raise SidecarError("MNEM_TLS_KEY is set and MNEM_TLS_CERT is not; set both, or neither")
    return context


def _bad_file(variable: str, name: str, error: OSError, what: str) -> SidecarError:
    reason = getattr(error, "reason", None) or error.strerror or error
    return SidecarError(f"{variable} names {name}, which can't be used ({reason}); set it to {what} in PEM")


def _plain_error(chunk: bytes) -> MnemError | None:
    """The error that a sidecar answers without TLS, if it is one and all there."""
    try:
        for body in FrameReader().feed(chunk):
            message = loads(body)
            error = cast("dict[str, Any]", message).get("error") if isinstance(message, dict) else None
            if error is not None:
                return from_wire(error)
    except (FrameError, ValueError):
        pass
    return None
