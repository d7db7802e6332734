"""Requests in flight: which future, of which loop, waits for which id."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """A request's result, and how many bytes its message had."""

    result: Any
    size: int


Outcome = Answer | Exception


@dataclass(slots=True)
class Settled:
    """Outcomes that arrived together: one wake-up of each loop delivers all that are its own."""

    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Answer], Outcome]]] = field(
        default_factory=dict[asyncio.AbstractEventLoop, "list[tuple[asyncio.Future[Answer], Outcome]]"]
    )

    def deliver(self) -> None:
        """Hand every outcome to its loop. A loop that was closed meanwhile has nobody left who waits."""
        for loop, outcomes in self.by_loop.items():
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, outcomes)
        self.by_loop.clear()


def _settle(outcomes: list[tuple[asyncio.Future[Answer], Outcome]]) -> None:
    for future, outcome in outcomes:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


class Calls:
    """The requests of one connection that have no answer yet; any thread may ask, one settles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._closed = False

    def open(self, loop: asyncio.AbstractEventLoop) -> tuple[int, asyncio.Future[Answer]] | None:
        """A new request's id and the future of its answer; None once the connection is lost."""
        future: asyncio.Future[Answer] = loop.create_future()
        with self._lock:
            if self._closed:
                return None
            number = next(self._ids)
            self._waiting[number] = future
        return number, future

    def forget(self, number: int) -> bool:
        """Nobody waits for this answer any more. False when it has arrived already."""
        with self._lock:
            return self._waiting.pop(number, None) is not None

    def settle(self, number: object, outcome: Outcome, settled: Settled) -> None:
        """Note the outcome of a request; one that nobody waits for is dropped."""
        if type(number) is not int:
            return
        with self._lock:
            future = self._waiting.pop(number, None)
        if future is not None:
            settled.by_loop.setdefault(future.get_loop(), []).append((future, outcome))

    def fail_all(self, error: Callable[[], Exception]) -> None:
        """The connection is lost: each who waits gets an error of their own, and nobody may begin to."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, {}
        settled = Settled()
        for future in waiting.values():
            settled.by_loop.setdefault(future.get_loop(), []).append((future, error()))
        settled.deliver()

    def __len__(self) -> int:
        return len(self._waiting)
