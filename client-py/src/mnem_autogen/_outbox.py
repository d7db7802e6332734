"""Frames on their way to the sidecar: whole and in order from any thread, and no caller ever waits."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

_PIECE = 1 << 20
"""Bytes offered at once; the pipe or socket takes what fits."""


class Outbox:
    """The non-blocking writing end of a pipe or socket, with a queue before it.

    The caller's thread writes at once what is taken; the rest waits for whoever watches that end to `flush`.

    Args:
        write: Writes what is taken now and returns how much that was; raises `BlockingIOError` for nothing,
            another `OSError` once the reader has gone.
        seal: What is really written for a frame, such as its ciphertext. Runs under the lock, so that things
            are sealed in the order in which they are sent.
    """

    def __init__(
        self, write: Callable[[memoryview], int], seal: Callable[[bytes], bytes] | None = None
    ) -> None:
        self._write_some = write
        self._seal = seal
        self._lock = threading.Lock()
        self._waiting: deque[memoryview] = deque()
        self._closed = False
        self.broken = False
        """Whether the reader has gone."""

    def put(self, frame: bytes) -> bool:
        """Take a frame. True when the watcher has something to do: a rest waits, or the reader has gone."""
        with self._lock:
            if self._closed:
                return False
            try:
                return self._take(frame if self._seal is None else self._seal(frame))
            except OSError:  # The other side has ended what is sealed; the end of it all is about to be read.
                return self._break()

    def put_made(self, make: Callable[[], bytes]) -> bool:
        """Run `make` with nothing being sealed meanwhile, and send as it is what it returns, if anything."""
        with self._lock:
            made = make()
            return bool(made) and not self._closed and self._take(made)

    def flush(self) -> bool:
        """Write what is taken now. True when nothing is left."""
        with self._lock:
            return self._write()

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def close(self) -> None:
        """Drop what waits and take no more. From now on nothing is written, so the end may be closed."""
        with self._lock:
            self._closed = True
            self._waiting.clear()

    def _take(self, data: bytes) -> bool:
        self._waiting.append(memoryview(data))
        return len(self._waiting) > 1 or not self._write() or self.broken

    def _write(self) -> bool:
        while self._waiting:
            first = self._waiting[0]
            try:
                written = self._write_some(first[:_PIECE])
            except BlockingIOError:
                return False
            except OSError:
                return self._break()
            if written == len(first):
                self._waiting.popleft()
            else:
                self._waiting[0] = first[written:]
        return True

    def _break(self) -> bool:
        self._closed = self.broken = True
        self._waiting.clear()
        return True
