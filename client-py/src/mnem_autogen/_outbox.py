"""Frames on their way into a pipe: whole and in order from any thread, and no caller ever waits."""

from __future__ import annotations

import os
import threading
from collections import deque

_PIECE = 1 << 20
"""Bytes offered to the pipe at once; it takes what fits."""


class Outbox:
    """A non-blocking pipe's write end with a queue before it.

    The caller's thread writes at once what the pipe takes; the rest waits for whoever watches the pipe to
    `flush`.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._waiting: deque[memoryview] = deque()
        self._closed = False
        self.broken = False
        """Whether the pipe's reader has gone."""

    def put(self, frame: bytes) -> bool:
        """Take a frame. True when the watcher has something to do: a rest waits, or the pipe broke."""
        with self._lock:
            if self._closed:
                return False
            self._waiting.append(memoryview(frame))
            return len(self._waiting) > 1 or not self._write() or self.broken

    def flush(self) -> bool:
        """Write what the pipe takes now. True when nothing is left."""
        with self._lock:
            return self._write()

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def close(self) -> None:
        """Drop what waits and take no more. From now on the pipe is not touched, so it may be closed."""
        with self._lock:
            self._closed = True
            self._waiting.clear()

    def _write(self) -> bool:
        while self._waiting:
            first = self._waiting[0]
            try:
                written = os.write(self._fd, first[:_PIECE])
            except BlockingIOError:
                return False
            except OSError:
                self._closed = self.broken = True
                self._waiting.clear()
                return True
            if written == len(first):
                self._waiting.popleft()
            else:
                self._waiting[0] = first[written:]
        return True
