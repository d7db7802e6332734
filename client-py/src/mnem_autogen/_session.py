"""One session over one transport: `initialize`, then requests and their answers, until the other side ends.

Everything but `send` happens on the connection's thread. Every wait is bounded once an end is wanted.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from . import _forks
from ._calls import Answer, Calls, Settled
from ._errors import MnemError, from_wire
from ._frames import FrameError, FrameReader, frame
from ._json import dumps, loads
from ._transport import Transport, Wish
from ._version import __version__
from ._wake import WakePipe

PROTOCOL = 1
END_SECONDS = 10.0
"""Longest time from the wish that it end to the end of what it took; then it is made to."""
_CHUNK = 1 << 18
_SECRET_BYTES = 8
"""A shorter token guards nothing, and may be part of any word."""
_LIMITS = ("frame_bytes", "item_bytes", "items_per_add")


@dataclass(frozen=True, slots=True)
class Limits:
    """What the sidecar takes: bytes of a frame's body and of an item as stored, items in one add."""

    frame_bytes: int
    item_bytes: int
    items_per_add: int


class Session:
    """Made where forks are held off, as it has a selector. Used once."""

    def __init__(
        self,
        transport: Transport,
        calls: Calls,
        wish: Wish,
        wake: WakePipe,
        on_open: Callable[[Limits], None],
    ) -> None:
        self.transport = transport
        self._calls = calls
        self._wish = wish
        self._wake = wake
        self._on_open = on_open
        self._selector = selectors.DefaultSelector()
        self._reader = FrameReader()
        self._secret: bytes | None = None
        self._deadline: float | None = None
        self._bounded = False
        self._dismissed = False
        self.limits: Limits | None = None
        """What the sidecar takes, once it has answered `initialize`."""
        self.fault: MnemError | None = None
        """What the sidecar answered to nothing in particular, or what was wrong with what it sent."""
        self.timed_out = False
        """Whether it did not answer `initialize` in time."""

    def send(self, body: bytes) -> None:
        """Send a message, from any thread; one that can't be sent any more is dropped."""
        if self.transport.outbox.put(frame(body)):
            self._wake.wake()

    def close(self) -> None:
        """Close the selector; may be called twice."""
        self._selector.close()

    def serve(self, token: str | None, deadline: float) -> None:
        """Introduce this client, then serve until the other side has ended or was given up.

        Args:
            token: What to show; no message ever quotes it.
            deadline: When `initialize` must have been answered.
        """
        transport, selector = self.transport, self._selector
        selector.register(transport.reading, selectors.EVENT_READ, self._on_readable)
        selector.register(self._wake.reading, selectors.EVENT_READ, self._wake.drain)
        aside = transport.aside()
        if aside is not None:
            fd, read = aside
            selector.register(fd, selectors.EVENT_READ, lambda: read() or selector.unregister(fd))
        self._deadline = deadline
        self._introduce(token)
        reading = transport.reading
        self._watch_writing()
        while reading in selector.get_map():
            events = selector.select(self._seconds_left())
            if not events and self._seconds_left() == 0.0:
                self._on_deadline()
            for key, _ in events:
                if key.fd in selector.get_map():
                    key.data()
            self._watch_writing()

    def _introduce(self, token: str | None) -> None:
        params: dict[str, Any] = {
            "protocol": PROTOCOL,
            "client": {"name": "mnem-autogen", "version": __version__},
        }
        if token is not None:
            params["token"] = token
            self._secret = dumps(token)[1:-1]
        self.send(dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))

    def _seconds_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def _watch_writing(self) -> None:
        """Wait for room exactly while there is more to write, and end our side once an end is wanted."""
        transport, selector = self.transport, self._selector
        outbox = transport.outbox
        ending = self._wish.ending or self._dismissed
        if self._wish.killing:
            transport.force()
        if ending and self.limits is None and transport.pid is None:
            self._stop()  # It was given nothing to finish, and only a process has to be seen to its end.
            return
        if (ending or outbox.broken) and not self._bounded:
            # From now on it gets time for what it took, and no more, also if it reads nothing.
            self._bounded = True
            self._deadline = time.monotonic() + END_SECONDS
        if transport.writing < 0:
            return
        watched = transport.writing in selector.get_map()
        if not outbox.empty and not watched:
            selector.register(transport.writing, selectors.EVENT_WRITE, outbox.flush)
        elif outbox.empty and watched:
            selector.unregister(transport.writing)
        if ending and outbox.empty:
            outbox.close()
            with _forks.held():
                transport.finish_writing()

    def _on_readable(self) -> None:
        chunk = self.transport.read(_CHUNK)
        if chunk is None:
            return
        if chunk == b"":
            self._stop()
            return
        settled = Settled()
        try:
            for body in self._reader.feed(chunk):
                self._on_message(self._without_secret(body), settled)
        except (FrameError, ValueError) as error:
            reason = self._without_secret(str(error).encode()).decode()
            self.fault = self.transport.misread(reason, self.limits is not None)
            self._give_up()
        finally:
            settled.deliver()

    def _without_secret(self, text: bytes) -> bytes:
        """What was read, without the token: what is no sidecar may repeat to us what we said."""
        if self._secret is None or len(self._secret) < _SECRET_BYTES or self.limits is not None:
            return text
        return text.replace(self._secret, b"***")

    def _on_message(self, body: bytes, settled: Settled) -> None:
        message = loads(body)
        if not isinstance(message, dict):
            raise ValueError("a message that is no object")
        fields = cast("dict[str, Any]", message)
        number = fields.get("id")
        if "method" in fields:
            if number is not None:
                raise ValueError("a request, which a sidecar never makes")
            return  # A notification of a later version's.
        if number == 0:
            self._on_initialized(fields)
        elif number is None:
            self.fault = from_wire(fields.get("error"))  # It refuses us, or what we wrote, and closes.
        elif "error" in fields:
            self._calls.settle(number, from_wire(fields["error"]), settled)
        else:
            self._calls.settle(number, Answer(fields.get("result"), len(body)), settled)

    def _on_initialized(self, fields: dict[str, Any]) -> None:
        if "error" in fields:
            self.fault = from_wire(fields["error"])
            self._dismissed = True
            return
        self.limits = _limits(fields.get("result"))
        self._reader.body_limit = self.limits.frame_bytes
        if not self._bounded:
            self._deadline = None
        self._on_open(self.limits)

    def _on_deadline(self) -> None:
        if self.limits is None and not self._wish.ending:
            self.timed_out = True
        self._give_up()

    def _give_up(self) -> None:
        self.transport.force()
        self._stop()

    def _stop(self) -> None:
        if self.transport.reading in self._selector.get_map():
            self._selector.unregister(self.transport.reading)


def _limits(result: object) -> Limits:
    fields = cast("dict[str, Any]", result) if isinstance(result, dict) else {}
    limits = fields.get("limits")
    numbers = (
        [cast("dict[str, Any]", limits).get(name) for name in _LIMITS] if isinstance(limits, dict) else []
    )
    if not numbers or any(type(number) is not int for number in numbers):
        raise ValueError("an answer to initialize that tells no limits")
    return Limits(*cast("list[int]", numbers))
