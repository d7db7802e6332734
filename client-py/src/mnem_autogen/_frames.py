"""Framing, writing and reading: `Content-Length: <bytes of the body>` CR LF CR LF, then the body."""

from __future__ import annotations

_END = b"\r\n\r\n"
_HEADER_BYTES = 1024
_SHOWN = 80

DEFAULT_BODY_BYTES = 32 * 1024 * 1024
"""Longest body read before the sidecar has said its limit."""


class FrameError(Exception):
    """The bytes that arrived are no frames, so where the next one begins is unknown."""


def frame(body: bytes) -> bytes:
    """One frame around `body`."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameReader:
    """Cuts a stream of bytes, arriving in any pieces, into bodies."""

    def __init__(self) -> None:
        self.body_limit = DEFAULT_BODY_BYTES
        self._buffer = bytearray()
        self._length: int | None = None

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take what arrived and return the bodies that it completes.

        Raises:
            FrameError: For a bad header, or a body over `body_limit`.
        """
        buffer = self._buffer
        buffer += chunk
        bodies: list[bytes] = []
        while True:
            if self._length is None:
                self._length = self._read_header()
            if self._length is None or len(buffer) < self._length:
                return bodies
            bodies.append(bytes(memoryview(buffer)[: self._length]))
            del buffer[: self._length]
            self._length = None

    def _read_header(self) -> int | None:
        """Take the header off the buffer and return the body's length, or None while it is not all there."""
        end = self._buffer.find(_END, 0, _HEADER_BYTES)
        if end < 0:
            # Anything but a header shows itself early: don't wait for the end of a header that never comes.
            self._expect_header_start()
            if len(self._buffer) >= _HEADER_BYTES:
                raise FrameError(f"a header without an end: {self._shown()}")
            return None
        length: int | None = None
        for line in bytes(self._buffer[:end]).split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                length = int(value)
        if length is None:
            raise FrameError(f"a header without a length: {self._shown()}")
        if length > self.body_limit:
            raise FrameError(f"a body of {length} bytes, over the limit of {self.body_limit}")
        del self._buffer[: end + len(_END)]
        return length

    def _expect_header_start(self) -> None:
        start = bytes(self._buffer[:8]).lower()
        if not b"content-".startswith(start):
            raise FrameError(f"no header: {self._shown()}")

    def _shown(self) -> str:
        return ascii(bytes(self._buffer[:_SHOWN]))
