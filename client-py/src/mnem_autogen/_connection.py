"""One running sidecar: the requests sent to it, and the thread that serves its pipes.

Guarantees. A caller's thread writes its own frames as far as the pipe takes them at once; nothing here ever
blocks an event loop. One daemon thread reads stdout (answers) and drains stderr, writes what the pipe did not
take, and reaps the process. Every wait of that thread is bounded once an end is wanted. When it returns, the
process is gone, all file descriptors are closed, and everybody who waited has an outcome.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from . import _forks
from ._calls import Answer, Calls, Settled
from ._errors import MnemError, ProtocolError, SidecarError, TooLargeError, from_wire
from ._frames import FrameError, FrameReader, frame
from ._json import dumps, loads
from ._outbox import Outbox
from ._program import find_program
from ._sidecar import Sidecar, read_some
from ._version import __version__

PROTOCOL = 1
START_SECONDS = 30.0
"""Longest time from the start of the process to its answer to `initialize`."""
END_SECONDS = 10.0
"""Longest time from the wish that it end to the end of the process; then it is made to."""
_LAST_WORDS_SECONDS = 2.0
_CHUNK = 1 << 18
_POLL_SECONDS = 0.005


class ConnectionLostError(Exception):
    """The sidecar ended with this request unanswered. A new one may be asked the same again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the sidecar takes: bytes of a frame's body and of an item as stored, items in one add."""

    frame_bytes: int
    item_bytes: int
    items_per_add: int


class Connection:
    """One sidecar process on one store. Used once; a lost one is replaced, never revived."""

    def __init__(self, store: str, on_end: Callable[[Connection], None]) -> None:
        self._store = store
        self._on_end = on_end
        self._calls = Calls()
        self._outbox: Outbox | None = None
        self._sidecar: Sidecar | None = None
        self._selector: selectors.BaseSelector | None = None
        self._reader = FrameReader()
        self._limits: Limits | None = None
        self._opened: concurrent.futures.Future[Limits] = _uncancellable()
        self._closed: concurrent.futures.Future[None] = _uncancellable()
        self._ending = False
        self._killing = False
        self._bounded = False
        self._fault: MnemError | None = None
        self._deadline: float | None = None
        self._wake_lock = threading.RLock()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._thread = threading.Thread(target=self._run, name="mnem-sidecar", daemon=True)

    # What callers use, from any thread and loop.

    def start(self) -> None:
        """Start the thread, which starts the sidecar.

        Raises:
            SidecarError: When the interpreter is ending, so that no thread can start.
        """
        try:
            self._thread.start()
        except RuntimeError as error:
            self._ending = True
            with _forks.held():
                _forks.CONNECTIONS.discard(self)
                self._close_wake()
            raise SidecarError("the interpreter is ending: too late to start a sidecar") from error

    @property
    def pid(self) -> int | None:
        """The sidecar's process id, once it was started."""
        return self._sidecar.pid if self._sidecar is not None else None

    @property
    def usable(self) -> bool:
        """Whether new requests may go to this sidecar."""
        return not self._ending and not self._closed.done()

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answer."""
        return len(self._calls)

    @property
    def stderr_bytes(self) -> int:
        """How much the sidecar has printed on stderr."""
        return self._sidecar.tail.total if self._sidecar is not None else 0

    async def opened(self) -> Limits:
        """Wait until the sidecar takes requests; what it takes.

        Raises:
            SidecarError: It could not be started, or ended at its start by its own choice.
            ProtocolError: It does not speak this version of the protocol.
            ConnectionLostError: It was killed meanwhile.
        """
        if self._limits is not None:
            return self._limits
        return await asyncio.wrap_future(self._opened)

    async def request(self, method: str, params: bytes) -> Answer:
        """Send one request and wait for its answer. Cancelling the wait cancels the request.

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
        """Have the sidecar finish what it was given, and end.

        Returns at once and waits for nobody, so it may be called from anywhere.
        """
        self._ending = True
        self._wake()

    def _wake(self) -> None:
        """Have the thread look at what has changed."""
        # The lock is against a number that was closed meanwhile and is some other file's now. A full pipe
        # wakes as well as one byte more; a closed one has nobody to wake.
        with self._wake_lock, contextlib.suppress(OSError):
            os.write(self._wake_write, b"\0")

    def kill(self) -> None:
        """Have the sidecar ended by force."""
        self._killing = True
        self.end()

    async def closed(self) -> None:
        """Wait until the process has ended and every file descriptor is closed."""
        await asyncio.wrap_future(self._closed)

    def join(self, timeout: float) -> bool:
        """Wait for the thread, in seconds, without an event loop. Whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def disown(self) -> None:
        """In a forked child: close all that was inherited. The parent's thread does not exist here."""
        self._wake_lock = threading.RLock()
        if self._selector is not None:
            self._selector.close()
        if self._sidecar is not None:
            self._sidecar.disown()
        self._close_wake()

    def _check_size(self, size: int) -> None:
        limit = self._limits.frame_bytes if self._limits is not None else size
        if size > limit:
            raise TooLargeError(
                f"this request has {size} bytes; the sidecar takes at most {limit}: send it in parts",
                kind="too_large",
                data={"limit": limit, "actual": size},
            )

    def _send(self, body: bytes) -> None:
        if self._outbox is not None and self._outbox.put(frame(body)):
            self._wake()

    def _close_wake(self) -> None:
        with self._wake_lock:
            fds = (self._wake_read, self._wake_write)
            self._wake_read = self._wake_write = -1
            for fd in fds:
                if fd >= 0:
                    os.close(fd)

    # What the thread does.

    def _run(self) -> None:
        try:
            with _forks.held():
                self._selector = selectors.DefaultSelector()
                self._sidecar = Sidecar(find_program(), self._store)
                self._outbox = Outbox(self._sidecar.stdin.fileno())
            self._serve(self._sidecar, self._selector)
        except MnemError as error:
            self._fault = error
        except Exception as error:  # whoever waits must hear of it, not a thread's last words
            self._fault = ProtocolError(f"the client failed while serving the sidecar: {error!r}")
            self._fault.__cause__ = error
        self._finish()

    def _serve(self, sidecar: Sidecar, selector: selectors.BaseSelector) -> None:
        selector.register(sidecar.stdout, selectors.EVENT_READ, self._on_stdout)
        selector.register(sidecar.stderr, selectors.EVENT_READ, self._on_stderr)
        selector.register(self._wake_read, selectors.EVENT_READ, self._on_wake)
        client = {"name": "mnem-autogen", "version": __version__}
        params = {"protocol": PROTOCOL, "client": client}
        self._send(dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
        self._deadline = time.monotonic() + START_SECONDS
        while sidecar.stdout in selector.get_map():
            self._watch_stdin(sidecar, selector)
            events = selector.select(self._seconds_left())
            if not events and self._seconds_left() == 0.0:
                self._on_deadline(sidecar, selector)
            for key, _ in events:
                key.data(sidecar, selector)

    def _seconds_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def _watch_stdin(self, sidecar: Sidecar, selector: selectors.BaseSelector) -> None:
        """Wait for the pipe to take more exactly while there is more, and close it once an end is wanted."""
        assert self._outbox is not None
        if self._killing:
            sidecar.signal(signal.SIGKILL)
        if (self._ending or self._outbox.broken) and not self._bounded:
            # From now on it gets time for what it took, and no more, also if it reads nothing.
            self._bounded = True
            self._deadline = time.monotonic() + END_SECONDS
        if sidecar.stdin.closed:
            return
        watched = sidecar.stdin in selector.get_map()
        if not self._outbox.empty and not watched:
            selector.register(sidecar.stdin, selectors.EVENT_WRITE, self._on_stdin)
        elif self._outbox.empty and watched:
            selector.unregister(sidecar.stdin)
        if self._ending and self._outbox.empty:
            self._outbox.close()
            with _forks.held():
                sidecar.close_stdin()

    def _on_wake(self, _sidecar: Sidecar, _selector: selectors.BaseSelector) -> None:
        os.read(self._wake_read, _CHUNK)

    def _on_stdin(self, _sidecar: Sidecar, _selector: selectors.BaseSelector) -> None:
        assert self._outbox is not None
        self._outbox.flush()

    def _on_stderr(self, sidecar: Sidecar, selector: selectors.BaseSelector) -> None:
        chunk = read_some(sidecar.stderr, _CHUNK)
        if chunk:
            sidecar.tail.feed(chunk)
        elif chunk == b"":
            selector.unregister(sidecar.stderr)

    def _on_stdout(self, sidecar: Sidecar, selector: selectors.BaseSelector) -> None:
        chunk = read_some(sidecar.stdout, _CHUNK)
        if chunk is None:
            return
        if chunk == b"":
            selector.unregister(sidecar.stdout)
            return
        settled = Settled()
        try:
            for body in self._reader.feed(chunk):
                self._on_message(body, settled)
        except (FrameError, ValueError) as error:
            self._fault = ProtocolError(
                f"the sidecar wrote something else than frames on its stdout: {error}"
            )
            selector.unregister(sidecar.stdout)
            sidecar.signal(signal.SIGKILL)
        finally:
            settled.deliver()

    def _on_message(self, body: bytes, settled: Settled) -> None:
        message = loads(body)
        if not isinstance(message, dict):
            raise ValueError("a message that is no object")
        fields = cast("dict[str, Any]", message)
        number = fields.get("id")
        if "method" in fields:
            return  # A notification of a later version's.
        if number == 0:
            self._on_initialized(fields)
        elif number is None:
            self._fault = from_wire(fields.get("error"))  # It could not read what we wrote, and closes.
        elif "error" in fields:
            self._calls.settle(number, from_wire(fields["error"]), settled)
        else:
            self._calls.settle(number, Answer(fields.get("result"), len(body)), settled)

    def _on_initialized(self, fields: dict[str, Any]) -> None:
        if "error" in fields:
            self._fault = from_wire(fields["error"])
            self.end()
            return
        limits = fields["result"]["limits"]
        self._limits = Limits(limits["frame_bytes"], limits["item_bytes"], limits["items_per_add"])
        self._reader.body_limit = self._limits.frame_bytes
        if not self._bounded:
            self._deadline = None
        self._opened.set_result(self._limits)

    def _on_deadline(self, sidecar: Sidecar, selector: selectors.BaseSelector) -> None:
        if self._limits is None and not self._ending:
            self._fault = SidecarError(
                f"the sidecar did not answer within {START_SECONDS:.0f} s of its start"
            )
        sidecar.signal(signal.SIGKILL)
        selector.unregister(sidecar.stdout)

    def _finish(self) -> None:
        """Reap the process and close everything; then tell, so that whoever learns of it finds it gone."""
        try:
            if self._sidecar is not None and self._selector is not None:
                self._reap(self._sidecar, self._selector)
        finally:
            self._on_end(self)
            self._close()
            story = self._sidecar.obituary() if self._sidecar is not None else ""
            self._calls.fail_all(lambda: self._loss(story))
            if not self._opened.done():
                self._opened.set_exception(self._loss(story))
            self._closed.set_result(None)

    def _close(self) -> None:
        if self._outbox is not None:
            self._outbox.close()
        with _forks.held():
            _forks.CONNECTIONS.discard(self)
            if self._selector is not None:
                self._selector.close()
            if self._sidecar is not None:
                self._sidecar.close()
            self._close_wake()

    def _reap(self, sidecar: Sidecar, selector: selectors.BaseSelector) -> None:
        """Its stdout has ended, so the process is about to: hear its last words, and see that it is gone."""
        if sidecar.stdout in selector.get_map():
            selector.unregister(sidecar.stdout)
        deadline = time.monotonic() + _LAST_WORDS_SECONDS
        while not sidecar.ended():
            if time.monotonic() >= deadline:
                sidecar.signal(signal.SIGKILL)
            if sidecar.stderr in selector.get_map() and selector.select(_POLL_SECONDS):
                self._on_stderr(sidecar, selector)
            else:
                time.sleep(_POLL_SECONDS)
        if sidecar.stderr in selector.get_map():
            while chunk := read_some(sidecar.stderr, _CHUNK):
                sidecar.tail.feed(chunk)

    def _loss(self, story: str) -> Exception:
        """The error for somebody who waited when the sidecar ended."""
        if self._fault is not None:
            fault = self._fault
            message = f"{fault}; the sidecar {story}" if story else str(fault)
            return type(fault)(message, kind=fault.kind, retryable=fault.retryable, data=fault.data)
        if self._limits is None and self._sidecar is not None and self._sidecar.failed_at_will:
            return SidecarError(f"the sidecar could not start on {self._store}: it {story}")
        return ConnectionLostError(story)


def _uncancellable() -> concurrent.futures.Future[Any]:
    """A future for several who wait: that one of them is cancelled must not cancel it for the others."""
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()
    return future
