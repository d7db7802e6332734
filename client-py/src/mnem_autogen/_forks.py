"""What a fork must find in order: no sidecar half started, and a list of what the child has to let go of.

A forked child inherits the parent's pipe ends and sockets. Held open there they would keep the sidecar from
seeing that the parent has ended, so the child closes them at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol


class Disowned(Protocol):
    """What a child lets go of."""

    def disown(self) -> None:
        """Close all that was inherited."""
        ...


CONNECTIONS: set[Disowned] = set()
"""Every connection of this process with open file descriptors."""

_RESETS: list[Callable[[], None]] = []
_lock = threading.Lock()


@contextmanager
def held() -> Generator[None]:
    """Hold off forks, while file descriptors are made or closed that a child could not know of."""
    lock = _lock
    with lock:
        yield


def in_child(reset: Callable[[], None]) -> None:
    """Have `reset` called in each forked child, after the connections were let go of."""
    _RESETS.append(reset)


def _before() -> None:
    _lock.acquire()


def _after_in_parent() -> None:
    _lock.release()


def _after_in_child() -> None:
    # A new lock, not a released one: in the child no other thread exists that could hold or want it.
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    connections = list(CONNECTIONS)
    CONNECTIONS.clear()
    for connection in connections:
        connection.disown()
    for reset in _RESETS:
        reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
