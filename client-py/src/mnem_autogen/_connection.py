"""One connection to a sidecar, be it a process of ours or a server elsewhere, and the thread that serves it.

Guarantees. A caller's thread writes its own frames as far as the pipe or socket takes them at once; nothing
here ever blocks an event loop. One daemon thread starts the process, or waits for the server; then it reads
answers, writes what was not taken, and sees to the end. Every wait of that thread is bounded once an end is
wanted. When it returns, a process is gone, all file descriptors are closed, and everybody who waited has an
outcome.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from . import _forks
from ._calls import Answer, Calls
from ._errors import MnemError, ProtocolError, SidecarError, TooLargeError
from ._json import dumps
from ._session import Limits, Session
from ._transport import Abandoned, Route, Transport, Unreached, Wish
from ._wake import WakePipe

_T = TypeVar("_T", bound=Transport)

_PAUSE_SECONDS = (0.05, 1.0)
"""The first and the longest pause between two attempts to reach a server; in between they double."""
_STAGE_SECONDS = 0.25
"""What has been waited for so long is the reason; before that it is why the attempt before failed."""


class ConnectionLostError(Exception):
    """The sidecar ended with this request unanswered. A new one may be asked the same again."""


class Connection:
    """One sidecar, reached by one route. Used once; a lost one is replaced, never revived."""

    def __init__(self, route: Route, on_end: Callable[[Connection], None]) -> None:
        self.wish = Wish()
        self.wake = WakePipe()
        self._route = route
        self._on_end = on_end
        self._calls = Calls()
        self._transport: Transport | None = None
        self._session: Session | None = None
        self._limits: Limits | None = None
        self._opened: concurrent.futures.Future[Limits] = _uncancellable()
        self._closed: concurrent.futures.Future[None] = _uncancellable()
        self._fault: MnemError | None = None
        self._stage: tuple[str, float] | None = None
        self._trouble = "is not reached yet"
        self._lock = threading.Lock()
        self._wanted_until = time.monotonic() + (route.patience or 0.0)
        self._thread = threading.Thread(target=self._run, name="mnem-sidecar", daemon=True)

    # What callers use, from any thread and loop.

    def start(self) -> None:
        """Start the thread, which reaches the sidecar.

        Raises:
            SidecarError: When the interpreter is ending, so that no thread can start.
        """
        try:
            self._thread.start()
        except RuntimeError as error:
            self.wish.ending = True
            with _forks.held():
                _forks.CONNECTIONS.discard(self)
                self.wake.close()
            raise SidecarError("the interpreter is ending: too late to reach a sidecar") from error

    @property
    def where(self) -> str:
        """Which sidecar, as the rest of "the sidecar …"."""
        return self._route.where

    @property
    def pid(self) -> int | None:
        """The sidecar's process id, where it is a process of ours and was started."""
        return self._transport.pid if self._transport is not None else None

    @property
    def usable(self) -> bool:
        """Whether new requests may go to this sidecar."""
        return not self.wish.ending and not self._closed.done()

    @property
    def is_open(self) -> bool:
        """Whether the sidecar has said that it takes requests."""
        return self._limits is not None

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answer."""
        return len(self._calls)

    @property
    def stderr_bytes(self) -> int:
        """How much the sidecar has printed on stderr."""
        return self._transport.stderr_bytes if self._transport is not None else 0

    async def opened(self) -> Limits:
        """Wait until the sidecar takes requests; what it takes.

        Raises:
            SidecarError: It could not be started, or not be reached within the route's patience.
            UnauthorizedError: It does not know the token.
            ProtocolError: It does not speak this version of the protocol.
            ConnectionLostError: It ended meanwhile, or an end was wanted.
        """
        if self._limits is not None:
            return self._limits
        patience = self._route.patience
        if patience is None:
            return await asyncio.wrap_future(self._opened)
        with self._lock:
            if self.wish.ending:
                raise ConnectionLostError("was given up")
            self._wanted_until = max(self._wanted_until, time.monotonic() + patience)
        future = asyncio.wrap_future(self._opened)
        try:
            await asyncio.wait({future}, timeout=patience)
            if future.done():
                return future.result()
            raise self._unreached(patience)
        finally:
            # Left alone, asyncio would report it as one whose error nobody saw.
            if not future.cancel() and not future.cancelled():
                future.exception()

    async def request(self, method: str, params: bytes) -> Answer:
        """Send one request, after `opened`, and wait for its answer. Cancelling the wait cancels the request.

        Raises:
            MnemError: What the sidecar answered.
            ConnectionLostError: It ended before it answered.
        """
        call = self._calls.open(asyncio.get_running_loop()) if self.usable else None
        if call is None:
            raise ConnectionLostError
        number, future = call
        try:
            body = b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (number, method.encode(), params)
            self._check_size(len(body))
            self._send(body)
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                future.exception()  # Fetched, so that asyncio does not report it as one that nobody saw.
            if self._calls.forget(number):
                self._send(dumps({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}}))
            raise
        finally:
            self._calls.forget(number)

    def end(self) -> None:
        """Have the sidecar finish what it was given, and end with it: a process itself, a server its part.

        Returns at once and waits for nobody, so it may be called from anywhere.
        """
        self.wish.ending = True
        self.wake.wake()

    def kill(self) -> None:
        """End by force, which kills a process."""
        self.wish.killing = True
        self.end()

    async def closed(self) -> None:
        """Wait until a process has ended, and every file descriptor is closed."""
        await asyncio.wrap_future(self._closed)

    def join(self, timeout: float) -> bool:
        """Wait for the thread, in seconds, without an event loop. Whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def disown(self) -> None:
        """In a forked child: close all that was inherited. The parent's thread does not exist here."""
        if self._session is not None:
            self._session.close()
        if self._transport is not None:
            self._transport.disown()
        self.wake.disown()

    def _check_size(self, size: int) -> None:
        limit = self._limits.frame_bytes if self._limits is not None else size
        if size > limit:
            raise TooLargeError(
                f"this request has {size} bytes; the sidecar takes at most {limit}: send it in parts",
                kind="too_large",
                data={"limit": limit, "actual": size},
            )

    def _send(self, body: bytes) -> None:
        if self._session is not None:
            self._session.send(body)

    # What a route uses, on the thread.

    def adopt(self, make: Callable[[], _T]) -> _T:
        """Have a transport made with forks held off, and know of it in a forked child."""
        with _forks.held():
            self._drop()
            transport = make()
            self._transport = transport
        return transport

    def stage(self, text: str) -> None:
        """Note what is waited for from now on."""
        self._stage = (text, time.monotonic())

    # What the thread does.

    def _run(self) -> None:
        try:
            self._attempts()
        except MnemError as error:
            self._fault = error
        except Abandoned:
            pass
        except Exception as error:  # whoever waits must hear of it, not a thread's last words
            self._fault = ProtocolError(f"the client failed while serving the sidecar: {error!r}")
            self._fault.__cause__ = error
        self._finish()

    def _attempts(self) -> None:
        """Reach a sidecar and serve it; where the route has patience, try until somebody answers."""
        pause, longest = _PAUSE_SECONDS
        while True:
            try:
                self._attempt()
            except Unreached as error:
                self._trouble, self._stage = str(error), None
                with _forks.held():
                    self._drop()
            else:
                return
            # The last part is left to chance, so that those whom one server left don't come back as one.
            self._rest(pause * random.uniform(0.5, 1.0))  # noqa: S311 (no secret)
            pause = min(2 * pause, longest)

    def _attempt(self) -> None:
        route = self._route
        token = route.token()
        deadline = time.monotonic() + route.start_seconds
        transport = route.open(self, deadline)
        with _forks.held():
            session = Session(transport, self._calls, self.wish, self.wake, self._on_open)
            self._session = session
        try:
            session.serve(token, deadline)
        finally:
            transport.reap()
        fault = session.fault
        if session.limits is None and not self.wish.ending:
            raise route.unanswered(session)
        # What may be asked again is asked again, of another one.
        self._fault = None if fault is None or fault.retryable else fault

    def _on_open(self, limits: Limits) -> None:
        self._limits = limits
        self._opened.set_result(limits)

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.wish.ending and (left := until - time.monotonic()) > 0:
            self.wake.wait(left)
        with self._lock:
            if self.wish.ending:
                raise Abandoned
            if time.monotonic() >= self._wanted_until:
                # From now on nobody may begin to wait here: `opened` sends them to another connection.
                self.wish.ending = True
                raise self._unreached(self._route.patience or 0.0)

    def _unreached(self, waited: float) -> SidecarError:
        stage, since = self._stage or ("", 0.0)
        reason = stage if stage and time.monotonic() - since >= _STAGE_SECONDS else self._trouble
        return SidecarError(
            f"no sidecar could be reached {self._route.where} within {waited:g} s (connect_timeout): "
            f"it {reason}. {self._route.advice()}"
        )

    def _drop(self) -> None:
        """Close what an attempt left, if anything."""
        if self._session is not None:
            self._session.close()
        if self._transport is not None:
            self._transport.outbox.close()
            self._transport.close()
        self._session = None

    def _finish(self) -> None:
        """Close everything; then tell, so that whoever learns of it finds it gone."""
        try:
            self._on_end(self)
        finally:
            with _forks.held():
                _forks.CONNECTIONS.discard(self)
                self._drop()
                self.wake.close()
            self._calls.fail_all(self._loss)
            if not self._opened.done():
                self._opened.set_exception(self._loss())
            self._closed.set_result(None)

    def _loss(self) -> Exception:
        """The error for somebody who waited when the sidecar ended, one each."""
        transport, fault = self._transport, self._fault
        if fault is None:
            return ConnectionLostError(transport.story() if transport is not None else "was not there")
        message = str(fault)
        if transport is not None and transport.tells_of_faults():
            message = f"{message}; the sidecar {transport.story()}"
        return type(fault)(message, kind=fault.kind, retryable=fault.retryable, data=fault.data)


def _uncancellable() -> concurrent.futures.Future[Any]:
    """A future for several who wait: that one of them is cancelled must not cancel it for the others."""
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()
    return future
