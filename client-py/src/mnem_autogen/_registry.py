"""One connection a process and sidecar: who uses it, when it is made, replaced and ended."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from . import _forks
from ._calls import Answer
from ._connection import Connection, ConnectionLostError
from ._dial import EndpointRoute
from ._endpoint import Endpoint
from ._errors import MnemError, SidecarError
from ._json import dumps
from ._session import Limits
from ._settings import find_connect_timeout, find_endpoint
from ._sidecar import SpawnRoute
from ._transport import Route

_T = TypeVar("_T")

_PAUSES = (0.0, 0.1, 0.5)
"""Seconds before each further attempt, after a sidecar was lost with a request unanswered."""
_DEFAULT_STORE = ".mnem"
_EXIT_SECONDS = 5.0
_KILLED_SECONDS = 2.0


class Link:
    """This process's way to one store or endpoint, whichever connection serves it at the moment."""

    def __init__(self, new_route: Callable[[], Route]) -> None:
        self._new_route = new_route
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._users: dict[int, str] = {}
        self._dropped: deque[int] = deque()

    @property
    def connection(self) -> Connection | None:
        """The connection in use, if there is one."""
        return self._connection

    def retain(self, user: int, memory: str) -> None:
        """Count `user` (see `new_user`), of the memory with this name, as long as it is not released."""
        with self._lock:
            self._users[user] = memory

    async def release(self, user: int) -> None:
        """Count `user` no more. With the last one the connection ends, and this waits until it is gone.

        A sidecar of this process's own ends with it.
        """
        with self._lock:
            while self._dropped:
                self._users.pop(self._dropped.popleft(), None)
            memory = self._users.pop(user, None)
            connection = self._connection
            last = not self._users
            unused = memory not in self._users.values()
            if memory is not None and last:
                self._connection = None
        if memory is None:
            return
        if connection is None:
            return
        if last:
            connection.end()
            await connection.closed()
        elif unused and connection.is_open:
            # Only to let the sidecar forget what it keeps at hand: nothing hangs on the answer.
            with contextlib.suppress(MnemError, ConnectionLostError):
                await connection.request("close", dumps({"memory": memory}))

    def drop(self, user: int) -> None:
        """Count `user` no more, as it is collected and was never closed. The connection stays for the next.

        Takes no lock: it may happen in any thread at any place, also where the lock is held.
        """
        self._dropped.append(user)

    async def limits(self) -> Limits:
        """What the sidecar takes; starts or reaches one if need be.

        Raises:
            SidecarError: No sidecar could be had.
            UnauthorizedError: It does not know the token.
        """
        return await self._persist(Connection.opened)

    async def call(self, method: str, params: bytes) -> Answer:
        """Ask the sidecar, reaching one if need be; ask again where one was lost before it answered.

        Asking again is safe: reads change nothing, and a write carries its idempotency key.

        Raises:
            MnemError: What the sidecar answered.
            SidecarError: No sidecar could be had, or several in a row were lost over this request.
        """

        async def ask(connection: Connection) -> Answer:
            await connection.opened()
            return await connection.request(method, params)

        return await self._persist(ask)

    async def _persist(self, ask: Callable[[Connection], Awaitable[_T]]) -> _T:
        lost = 0
        while True:
            connection = self._connect()
            try:
                return await ask(connection)
            except ConnectionLostError as error:
                await self._lost(connection, error, lost)
            except MnemError as error:
                if error.kind != "shutting_down":
                    raise
                connection.end()
                await self._lost(connection, error, lost)
            lost += 1

    async def _lost(self, connection: Connection, error: Exception, before: int) -> None:
        """Give up after so many losses before, or wait a little."""
        self._forget(connection)
        if before == len(_PAUSES):
            raise SidecarError(
                f"the sidecar {connection.where} was lost {before + 1} times over one request; "
                f"the last one {error}"
            ) from error
        if _PAUSES[before] > 0:
            await asyncio.sleep(_PAUSES[before])

    def _connect(self) -> Connection:
        with self._lock:
            if self._connection is None or not self._connection.usable:
                with _forks.held():
                    connection = Connection(self._new_route(), self._forget)
                    _forks.CONNECTIONS.add(connection)
                self._connection = connection
                connection.start()
            return self._connection

    def _forget(self, connection: Connection) -> None:
        with self._lock:
            if self._connection is connection:
                self._connection = None

    def reset(self) -> None:
        """In a forked child: the same users, and a connection of the child's own at the first use."""
        self._lock = threading.Lock()
        self._connection = None


_lock = threading.Lock()
_user_numbers = itertools.count()
_links: dict[object, Link] = {}


def find_link(
    store: str | None, endpoint: Endpoint | None, token: str | None, connect_timeout: float | None
) -> Link:
    """The link for what was given, or else for what the environment says now.

    Raises:
        SidecarError: A variable can't be used.
    """
    if store is None and endpoint is None:
        endpoint = find_endpoint()
    if endpoint is not None:
        return link_to(endpoint, token, find_connect_timeout(connect_timeout))
    return link(store or os.environ.get("MNEM_STORE") or _DEFAULT_STORE)


def link(store: str) -> Link:
    """The one link of this process to the store directory, however its path is spelled."""
    real = os.path.realpath(store)
    return _link(real, lambda: SpawnRoute(real))


def link_to(endpoint: Endpoint, token: str | None, patience: float) -> Link:
    """The one link of this process to a running sidecar, by this token (None: what the environment says).

    Those who show another token, or wait for another time, have a link of their own.
    """
    return _link((endpoint, token, patience), lambda: EndpointRoute(endpoint, token, patience))


def _link(key: object, new_route: Callable[[], Route]) -> Link:
    with _lock:
        return _links.setdefault(key, Link(new_route))


def new_user() -> int:
    """A number for one user of a link."""
    return next(_user_numbers)


def connections() -> list[Connection]:
    """Every connection of this process that has not ended."""
    return [cast("Connection", connection) for connection in list(_forks.CONNECTIONS)]


def _reset_in_child() -> None:
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    for each in _links.values():
        each.reset()


def _end_all() -> None:
    """At the interpreter's end: no thread can start any more, but those that serve still run."""
    left = connections()
    for connection in left:
        connection.end()
    for connection in left:
        if not connection.join(_EXIT_SECONDS):
            connection.kill()
            connection.join(_KILLED_SECONDS)


_forks.in_child(_reset_in_child)
atexit.register(_end_all)
