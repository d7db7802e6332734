"""Looking back: what a memory held, what changed, who did it, and when it began."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from ._arguments import at_field
from ._content import decode_commit, decode_memory_item
from ._errors import InvalidRefError, TooLargeError, refused
from ._json import check_integer, check_text
from ._types import Blame, Change, Commit, HistoryEntry, MemoryItem, Problem, Purged, Snapshot, VerifyResult

_LOG_PAGE = 1000


class HistoryMethods(ABC):
    """The reading methods of `MnemosyneMemory` beyond AutoGen's `Memory`."""

    _name: str

    @abstractmethod
    async def _ask(self, method: str, fields: dict[str, Any], branch: bool = True) -> dict[str, Any]:
        """Ask the sidecar about this memory."""

    async def items(self, at: str | int | None = None) -> list[MemoryItem]:
        """Every live item with its id, oldest first, purged ones too; `at` a commit-ish or time in ms."""
        _, items = await self._show(at)
        return items

    async def log(
        self,
        limit: int | None = None,
        *,
        at: str | int | None = None,
        since: int | None = None,
        first_parent: bool = False,
    ) -> list[Commit]:
        """The commits, newest first, children before parents.

        Args:
            limit: At most so many; None for all.
            at: Where to begin: a commit-ish or a time in ms; None for the head.
            since: Only commits that are not older than this time in ms.
            first_parent: Follow first parents only.
        """
        fields: dict[str, Any] = at_field(at)
        if since is not None:
            fields["since"] = check_integer(since, "since")
        if first_parent:
            fields["first_parent"] = True
        if limit is not None and check_integer(limit, "limit") < 0:
            raise refused("limit", "is negative; give None for all commits")
        commits: list[Commit] = []
        while limit is None or len(commits) < limit:
            page = _LOG_PAGE if limit is None else min(_LOG_PAGE, limit - len(commits))
            result = await self._ask("log", {**fields, "limit": page})
            commits += [decode_commit(each) for each in result["commits"]]
            if "next" not in result:
                break
            fields["after"] = result["next"]
        return commits

    async def show(self, at: str | int | None = None) -> Snapshot:
        """The memory as it was at a commit-ish or a time in Unix milliseconds; None for the head.

        Raises:
            InvalidRefError: There is no such commit, or none at all yet.
        """
        commit, items = await self._show(at)
        if commit is None:
            raise InvalidRefError(
                f"memory {self._name!r} has no commit yet; add something first", kind="invalid_ref"
            )
        return Snapshot(commit=commit, items=tuple(items))

    async def why(self, item_id: str, at: str | int | None = None) -> Blame:
        """Which commit gave an item the value that it has now, or `at` a commit-ish or time in ms.

        Raises:
            NotFoundError: There is no such item there.
        """
        result = await self._ask("why", {"id": check_text(item_id, "item_id"), **at_field(at)})
        return Blame(commit=decode_commit(result["commit"]), item=decode_memory_item(result["item"]))

    async def diff(self, old: str | int, new: str | int) -> list[Change]:
        """The items that differ between two commits, by id; each a commit-ish or a time in ms.

        Raises:
            InvalidRefError: There is no such commit.
        """
        fields = {"from": at_field(old)["at"], "to": at_field(new)["at"]}
        result = await self._ask("diff", fields)
        return [_decode_change(each) for each in result["changes"]]

    async def changed(self, commit: str) -> list[Change]:
        """What a commit changed against its first parent.

        Raises:
            InvalidRefError: There is no such commit.
        """
        result = await self._ask("changed", {"commit": check_text(commit, "commit")}, branch=False)
        return [_decode_change(each) for each in result["changes"]]

    async def history(self, item_id: str) -> list[HistoryEntry]:
        """Every commit that set an item or removed it, newest first, followed through merges.

        Numbers begin again after a `clear`, so an id may have been several items.

        Raises:
            NotFoundError: No commit did.
        """
        result = await self._ask("history", {"id": check_text(item_id, "item_id")})
        return [
            HistoryEntry(
                commit=decode_commit(each["commit"]),
                kind=each["kind"],
                item=None if each["item"] is None else decode_memory_item(each["item"]),
            )
            for each in result["entries"]
        ]

    async def bisect(
        self,
        predicate: Callable[[dict[str, MemoryItem]], object],
        good: str | int | None = None,
        bad: str | int | None = None,
    ) -> Commit:
        """Find the first commit where `predicate` holds, taking it that it holds from there on.

        The commits behind `good` up to `bad` on its chain of first parents are searched; of 100,000, some 17
        states are looked at. After the first one only what differs is transferred.

        Args:
            predicate: Called with the live items by id, oldest first; its answer is taken by its truth.
            good: A commit-ish or time in ms where it does not hold; None for before the first commit.
            bad: Where it holds; None for the head.

        Raises:
            InvalidRefError: It holds at `good` already, or does not hold at `bad`, or `good` is not behind
                `bad`.
        """
        bounds: dict[str, Any] = {}
        for name, at in (("good", good), ("bad", bad)):
            if at is not None:
                bounds[name] = at_field(at)["at"]
        first = await self._ask("bisect", {**bounds, "probe": 0})
        state = _State(self)
        if good is not None and predicate(await state.at(good)):
            raise InvalidRefError(
                "the predicate holds at good already; give an earlier one", kind="invalid_ref"
            )
        low, high = 0, first["count"]
        last = await self._ask("bisect", {**bounds, "probe": high - 1})
        if not predicate(await state.at(last["commit"]["id"])):
            raise InvalidRefError(
                "the predicate does not hold at bad; give a commit where it does", kind="invalid_ref"
            )
        found = decode_commit(last["commit"])
        # The head may move on meanwhile; the search stays between the commits that it began with.
        bounds["bad"] = found.id
        while low < high:
            middle = (low + high) // 2
            probe = await self._ask("bisect", {**bounds, "probe": middle})
            commit = decode_commit(probe["commit"])
            if predicate(await state.at(commit.id)):
                high, found = middle, commit
            else:
                low = middle + 1
        return found

    async def verify(self, repair: bool = False) -> VerifyResult:
        """Derive every id of the memory again, from its commits alone, and tell what does not fit.

        Args:
            repair: Make what is derived from the commits for speed anew. Commits themselves never change.

        Raises:
            CorruptStoreError: A commit can't be read, so nothing can be made anew from it.
            UnauthorizedError: To repair, the token needs the verb `admin`.
        """
        result = await self._ask("verify", {"repair": True} if repair else {}, branch=False)
        return VerifyResult(
            ok=result["ok"],
            objects=result["objects"],
            problems=tuple(Problem(each["object"], each["problem"]) for each in result["problems"]),
            redacted=tuple(result["redacted"]),
            purged=tuple(_decode_purged(each) for each in result.get("purged", [])),
        )

    async def head(self) -> str | None:
        """Id of the newest commit, 64 hex digits; None while nothing was written."""
        commits = await self.log(1)
        return commits[0].id if commits else None

    async def _show(self, at: str | int | None) -> tuple[Commit | None, list[MemoryItem]]:
        fields = at_field(at)
        listing = await self._ask("show", fields)
        info = listing.get("commit_info")
        items = [decode_memory_item(each) for each in listing["items"]]
        while listing.get("more") is True:
            have = {"commit": listing["commit"], "count": len(items), "epoch": listing["epoch"]}
            listing = await self._ask("show", {"at": listing["commit"], "have": have})
            if listing["mode"] == "full":
                items.clear()  # A purge came between.
            items += [decode_memory_item(each) for each in listing["items"]]
        return (None if info is None else decode_commit(info)), items


class _State:
    """A memory's items at one commit, moved to others by what differs."""

    def __init__(self, memory: HistoryMethods) -> None:
        self._memory = memory
        self._at: str | None = None
        self._items: dict[str, MemoryItem] = {}

    async def at(self, at: str | int) -> dict[str, MemoryItem]:
        """The items there, by id, oldest first; the caller's to change."""
        if self._at is None or isinstance(at, int):
            await self._load(at)
        elif at != self._at:
            try:
                changes = await self._memory.diff(self._at, at)
            except TooLargeError:
                await self._load(at)
            else:
                for change in changes:
                    if change.new is None:
                        del self._items[change.id]
                    else:
                        self._items[change.id] = change.new
                # Ids have ten digits, so their order as text is the items'.
                self._items = dict(sorted(self._items.items()))
                self._at = at
        return dict(self._items)

    async def _load(self, at: str | int) -> None:
        snapshot = await self._memory.show(at)
        self._at = snapshot.commit.id
        self._items = {item.id: item for item in snapshot.items}


def _decode_purged(wire: dict[str, Any]) -> Purged:
    return Purged(wire["object"], wire["id"], wire["author"], wire["time"], wire["reason"])


def _decode_change(wire: dict[str, Any]) -> Change:
    old, new = wire.get("old"), wire.get("new")
    return Change(
        id=wire["id"],
        kind=wire["kind"],
        old=None if old is None else decode_memory_item(old),
        new=None if new is None else decode_memory_item(new),
    )
