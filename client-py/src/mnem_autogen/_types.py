"""What the methods beyond AutoGen's `Memory` give back. Field names are the wire's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from autogen_core import Image
from autogen_core.memory import MemoryMimeType


class Provenance(TypedDict, total=False):
    """How an item came to exist. Every field is optional; an empty string counts as set."""

    agent_step: str
    observation: str
    tool_call: str
    source: str
    note: str


@dataclass(frozen=True, slots=True)
class Commit:
    """One change of a memory.

    Attributes:
        id: 64 hex digits.
        parents: Ids of the commits before it: none for the first, two for a merge, ours first.
        state: Id of the whole state after it, 64 hex digits.
        message: What was done, such as `add item to prefs`.
        author: Who did it.
        time: When, in Unix milliseconds. Times never decide order.
    """

    id: str
    parents: tuple[str, ...]
    state: str
    message: str
    author: str
    time: int


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One stored `MemoryContent` with what the store knows about it.

    Attributes:
        id: Such as `prefs:0000000007`. Ids repeat after a `clear`: cite commit and id together.
        content: As it was added; None when `redacted`.
        mime_type: AutoGen's enum where it has one, else the string; None when `redacted`.
        metadata: As it was added.
        provenance: The fields that were given, or None.
        event_time: When it happened, in Unix milliseconds, if the caller said so.
        redacted: Whether the content was purged.
    """

    id: str
    content: str | bytes | dict[str, Any] | Image | None
    mime_type: MemoryMimeType | str | None
    metadata: dict[str, Any] | None = None
    provenance: Provenance | None = None
    event_time: int | None = None
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A memory as it was at one commit: the commit, and every item that was live, oldest first."""

    commit: Commit
    items: tuple[MemoryItem, ...]


@dataclass(frozen=True, slots=True)
class AddResult:
    """What an add made: the commit's id, and the new items' ids in the order given."""

    commit: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """What a forget made: the commit's id (None where nothing was live), and how many items went."""

    commit: str | None
    forgotten: int


@dataclass(frozen=True, slots=True)
class Blame:
    """Who gave an item its value: the commit, and the item as that commit wrote it."""

    commit: Commit
    item: MemoryItem


@dataclass(frozen=True, slots=True)
class Stats:
    """Numbers about one memory.

    Attributes:
        memory: Its name.
        branch: The branch counted.
        commit: Id of that branch's head, None while nothing was written.
        commits: Commits stored for this memory.
        items: Live items.
        epoch: How many purges it has seen.
    """

    memory: str
    branch: str
    commit: str | None
    commits: int
    items: int
    epoch: int
