"""A pipe by which any thread wakes one that waits for file descriptors."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading

_CHUNK = 1 << 16
_LONGEST_SECONDS = 3600.0
"""A selector can't wait for any number of seconds; who waits longer looks again once an hour."""

# Neither has a file descriptor of its own, which a forked child would have to close.
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


class WakePipe:
    """Made where forks are held off (`_forks.held`); closed or disowned once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.reading, self._writing = os.pipe()
        os.set_blocking(self.reading, False)
        os.set_blocking(self._writing, False)

    def wake(self) -> None:
        """Have the thread look at what has changed. Never waits, and may be called from anywhere."""
        # The lock is against a number that was closed meanwhile and is some other file's now. A full pipe
        # wakes as well as one byte more; a closed one has nobody to wake.
        with self._lock, contextlib.suppress(OSError):
            os.write(self._writing, b"\0")

    def drain(self) -> None:
        """Take what woke."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.reading, _CHUNK)

    def wait(self, seconds: float, fd: int | None = None, events: int = selectors.EVENT_READ) -> bool:
        """Wait until `fd` is ready, which makes it True, or somebody wakes, or the seconds have passed."""
        with _Selector() as selector:
            selector.register(self.reading, selectors.EVENT_READ)
            if fd is not None:
                selector.register(fd, events)
            ready = {key.fd for key, _ in selector.select(min(max(0.0, seconds), _LONGEST_SECONDS))}
        if self.reading in ready:
            self.drain()
        return fd in ready

    def close(self) -> None:
        """Close both ends; may be called twice."""
        with self._lock:
            fds = (self.reading, self._writing)
            self.reading = self._writing = -1
            for fd in fds:
                if fd >= 0:
                    os.close(fd)

    def disown(self) -> None:
        """In a forked child: close the inherited ends. A thread that held the lock does not exist here."""
        self._lock = threading.RLock()
        self.close()
