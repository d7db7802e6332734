"""What the methods beyond AutoGen's `Memory` give back. Field names are the wire's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

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


@dataclass(frozen=True, slots=True)
class Change:
    """How one item differs between two commits.

    Attributes:
        id: The item's id.
        kind: `added` (only `new` is there), `removed` (only `old`) or `changed` (both).
        old: The item before, or None.
        new: The item after, or None.
    """

    id: str
    kind: Literal["added", "removed", "changed"]
    old: MemoryItem | None
    new: MemoryItem | None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit in the life of an item: what it did, and the item that it set, None where it removed it."""

    commit: Commit
    kind: Literal["added", "removed", "changed"]
    item: MemoryItem | None


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch: its name, the id of the commit that it points at, and whether it is the memory's default."""

    name: str
    commit: str
    default: bool


@dataclass(frozen=True, slots=True)
class Renumbering:
    """Items that a merge gave other numbers: `count` of them, from `old` on, are now those from `new` on."""

    old: str
    new: str
    count: int


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """An item that both sides changed.

    Attributes:
        id: In the branch merged into; name it so in `resolutions`.
        kind: `edit/edit`, `edit/delete` (theirs removed it) or `delete/edit` (ours did).
        base: The item where the branches parted, or None.
        ours: The item in the branch merged into, or None.
        theirs: The item in the other one, or None.
    """

    id: str
    kind: str
    base: MemoryItem | None
    ours: MemoryItem | None
    theirs: MemoryItem | None


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a merge did.

    Attributes:
        status: `up_to_date` (there was nothing to do), `fast_forward` (the branch moved on to a commit that
            has it behind it), `merged` (a merge commit was made) or `conflicts` (nothing was written).
        commit: The commit that the branch points at now; None where nothing changed.
        renumbered: Items that came in under other numbers.
        conflicts: What has to be settled first.
        redacted: Ids in the other branch of purged items, which can't come over under another number.
    """

    status: Literal["up_to_date", "fast_forward", "merged", "conflicts"]
    commit: str | None
    renumbered: tuple[Renumbering, ...]
    conflicts: tuple[MergeConflict, ...]
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a store that is not what it must be: what it was found at, and what is wrong."""

    object: str
    problem: str


@dataclass(frozen=True, slots=True)
class Purged:
    """An object whose content was purged: its id, the item's id, and who did it, when (Unix ms) and why."""

    object: str
    id: str
    author: str
    time: int
    reason: str


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What came of deriving every id of a memory again.

    Attributes:
        ok: Whether all of it fits.
        objects: Nodes, states and commits that were derived.
        problems: What does not fit.
        redacted: Ids of items whose content was purged.
        purged: Who purged what, when and why.
    """

    ok: bool
    objects: int
    problems: tuple[Problem, ...]
    redacted: tuple[str, ...]
    purged: tuple[Purged, ...] = ()


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """What a purge did.

    Attributes:
        purged: Ids of the items whose content is gone.
        epoch: How many purges the memory has seen.
        elsewhere: Other memories of the store that hold the same items, as an import of this one does.
    """

    purged: tuple[str, ...]
    epoch: int
    elsewhere: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import made: the commit that the default branch points at, and how many commits there are."""

    commit: str
    commits: int
