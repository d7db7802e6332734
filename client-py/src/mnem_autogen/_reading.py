"""What is live in a memory: a read says what is held already, and gets only what that lacks."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from autogen_core.memory import MemoryContent

from . import _forks
from ._calls import Answer
from ._content import DecodedItem
from ._errors import ProtocolError

CACHE_BYTES = 64 * 1024 * 1024
"""Roughly the memory that all readings kept by a process take."""

_PER_WIRE_BYTE = 3
"""Decoded objects and the rendered text, for each byte of the answer that brought them."""

_TITLE = "\nRelevant memory content (in chronological order):\n"

Call = Callable[[str, dict[str, Any]], Awaitable[Answer]]


class Reading:
    """A memory's live items at one commit, oldest first. Never changed once made."""

    __slots__ = ("_body", "_items", "commit", "epoch", "size")

    def __init__(self, commit: str | None, epoch: int, items: tuple[DecodedItem, ...], size: int) -> None:
        self.commit = commit
        self.epoch = epoch
        self.size = size
        self._items = items
        self._body: str | None = None

    @property
    def count(self) -> int:
        """How many items there are."""
        return len(self._items)

    def extended(self, commit: str | None, items: tuple[DecodedItem, ...], size: int) -> Reading:
        """This reading with the items that were added since."""
        longer = Reading(commit, self.epoch, self._items + items, self.size + size)
        if self._body is not None:
            longer._body = _join(self._body, items, len(self._items) + 1)
        return longer

    def contents(self) -> list[MemoryContent]:
        """The items as new objects, the caller's to change."""
        return [item.fresh() for item in self._items]

    def text(self) -> str:
        """The message that `ListMemory` makes of these items."""
        if self._body is None:
            self._body = _join("", self._items, 1)
        return f"{_TITLE}{self._body}\n"


def _join(before: str, items: tuple[DecodedItem, ...], first: int) -> str:
    lines = [f"{number}. {item.rendered()}" for number, item in enumerate(items, first)]
    return "\n".join([before, *lines] if before else lines)


class ReadingCache:
    """The latest reading of each memory, least recently used ones dropped; any thread may use it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._kept: OrderedDict[object, Reading] = OrderedDict()
        self._size = 0

    def get(self, key: object) -> Reading | None:
        """The reading kept for `key`."""
        with self._lock:
            reading = self._kept.get(key)
            if reading is not None:
                self._kept.move_to_end(key)
            return reading

    def put(self, key: object, reading: Reading) -> None:
        """Keep `reading` in place of the one before."""
        with self._lock:
            self._drop(key)
            if reading.size > self._limit:
                return
            self._kept[key] = reading
            self._size += reading.size
            while self._size > self._limit:
                self._drop(next(iter(self._kept)))

    def drop(self, key: object) -> None:
        """Keep nothing for `key`."""
        with self._lock:
            self._drop(key)

    def drop_if(self, matches: Callable[[object], bool]) -> None:
        """Keep nothing for keys that match."""
        with self._lock:
            for key in [each for each in self._kept if matches(each)]:
                self._drop(key)

    def _drop(self, key: object) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            self._size -= old.size

    def reset(self) -> None:
        """In a forked child: a lock that nobody holds."""
        self._lock = threading.Lock()


cache = ReadingCache(CACHE_BYTES)
_forks.in_child(cache.reset)


async def read(call: Call, method: str, key: object, params: dict[str, Any]) -> Reading:
    """Read what is live now, by `method` (`query` or `update_context`), with what `cache` holds under `key`.

    Raises:
        MnemError: What the sidecar answered.
    """
    held = cache.get(key)
    request = params if held is None else {**params, **_have(held)}
    answer = await call(method, request)
    try:
        reading = _apply(held, answer)
        while answer.result.get("more") is True:
            # Parts are of one commit, whatever is added meanwhile.
            rest = {**params, "at": reading.commit, **_have(reading)}
            answer = await call("query", rest)
            reading = _apply(reading, answer)
        if reading.count != answer.result["count"]:
            raise ProtocolError(f"the sidecar sent {reading.count} items of {answer.result['count']}")
    except ProtocolError:
        cache.drop(key)
        raise
    if reading is not held:
        cache.put(key, reading)
    return reading


def _have(reading: Reading) -> dict[str, Any]:
    if reading.commit is None:
        return {}
    return {"have": {"commit": reading.commit, "count": reading.count, "epoch": reading.epoch}}


def _apply(held: Reading | None, answer: Answer) -> Reading:
    """What is held after an answer to a request that said what was held before."""
    listing = answer.result
    mode, commit = listing["mode"], listing["commit"]
    if mode == "unchanged" and held is not None:
        return held
    items = tuple(DecodedItem(item) for item in listing["items"])
    size = answer.size * _PER_WIRE_BYTE + sum(item.pixel_bytes for item in items)
    if mode == "appended" and held is not None:
        return held.extended(commit, items, size)
    if mode != "full":
        raise ProtocolError(f"the sidecar sent a listing that doesn't fit what was asked: {mode!r}")
    return Reading(commit, listing["epoch"], items, size)
