"""Branches of a memory: made, switched, deleted, and merged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

from autogen_core.memory import MemoryContent

from ._arguments import at_field
from ._content import decode_memory_item, encode_item
from ._errors import InvalidRefError, refused
from ._json import check_text, loads
from ._types import Branch, Commit, MemoryItem, MergeConflict, MergeResult, Renumbering

Resolution = Literal["ours", "theirs", "base", "delete"] | MemoryContent
"""How a conflict is settled: by one side, by what was there before, as gone, or by new content."""


class BranchMethods(ABC):
    """The methods of `MnemosyneMemory` about branches."""

    _branch: str | None

    @abstractmethod
    async def _ask(self, method: str, fields: dict[str, Any], branch: bool = True) -> dict[str, Any]:
        """Ask the sidecar about this memory."""

    @abstractmethod
    def _write_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """What every commit says of itself."""

    @abstractmethod
    async def log(self, limit: int | None = None, *, at: str | int | None = None) -> list[Commit]:
        """The commits, newest first."""

    async def branches(self) -> list[Branch]:
        """The memory's branches, by name; none while nothing was written."""
        return _decode_branches(await self._ask("branches", {}, branch=False))

    async def branch(self, name: str, at: str | int | None = None) -> Branch:
        """Make a branch at a commit-ish or a time in ms; None for the head of this object's branch.

        Names have letters, digits, `-`, `_`, `.` and `/`.

        Raises:
            ConflictError: There is a branch of this name.
            InvalidContentError: It can't be a branch's name.
            InvalidRefError: There is no such commit, or none at all yet.
        """
        fields: dict[str, Any] = {"name": check_text(name, "name")}
        if isinstance(at, int):
            # A time is one of this object's branch, which the method itself does not ask for.
            commits = await self.log(1, at=at)
            if not commits:
                raise InvalidRefError(
                    f"there is no commit yet at {at}; give a later time", kind="invalid_ref"
                )
            fields["at"] = commits[0].id
        elif at is not None or self._branch is not None:
            fields |= at_field(at if at is not None else self._branch)
        made = _decode_branches(await self._ask("branch", fields, branch=False))
        return next(each for each in made if each.name == name)

    async def switch(self, name: str) -> None:
        """Make another branch the memory's default, for everybody who names none.

        Raises:
            NotFoundError: There is no such branch.
        """
        fields = {"branch": check_text(name, "name")}
        await self._ask("switch", fields, branch=False)

    async def delete_branch(self, name: str) -> None:
        """Delete a branch; its commits stay readable by their ids.

        Raises:
            NotFoundError: There is no such branch.
            ConflictError: It is the default one.
        """
        await self._ask("delete_branch", {"name": check_text(name, "name")}, branch=False)

    async def merge(
        self,
        source: str | int,
        strategy: Literal["ours", "theirs"] | None = None,
        resolutions: Mapping[str, Resolution] | None = None,
    ) -> MergeResult:
        """Merge a branch or commit into this object's branch, keeping the items of both.

        Items keep their numbers here; those that come in follow in their order, under new numbers where their
        own are taken. What one side has forgotten stays forgotten. Branches that only add and forget never
        conflict.

        Args:
            source: What is merged: a commit-ish or a time in ms.
            strategy: Whose side wins where both changed an item and no resolution says otherwise.
            resolutions: By the id that a conflict names.

        Raises:
            InvalidRefError: There is no such commit, or no conflict at an id in `resolutions`.
        """
        fields: dict[str, Any] = {"from": at_field(source)["at"]}
        if self._branch is not None:
            fields["into"] = self._branch
        if strategy is not None:
            fields["strategy"] = check_text(strategy, "strategy")
        if resolutions:
            fields["resolutions"] = {
                check_text(key, "resolutions"): _encode_resolution(value, f"resolutions[{key!r}]")
                for key, value in resolutions.items()
            }
        return _decode_merge(await self._ask("merge", self._write_fields(fields), branch=False))


def _encode_resolution(value: object, path: str) -> Any:
    if isinstance(value, MemoryContent):
        return loads(encode_item(value, f"{path}.").json)
    if isinstance(value, str):
        return check_text(value, path)
    raise refused(path, 'is neither "ours", "theirs", "base" or "delete" nor a MemoryContent')


def _decode_branches(result: dict[str, Any]) -> list[Branch]:
    return [
        Branch(name=each["name"], commit=each["commit"], default=each["default"])
        for each in result["branches"]
    ]


def _decode_merge(result: dict[str, Any]) -> MergeResult:
    def item(wire: dict[str, Any] | None) -> MemoryItem | None:
        return None if wire is None else decode_memory_item(wire)

    return MergeResult(
        status=result["status"],
        commit=result.get("commit"),
        renumbered=tuple(
            Renumbering(old=each["from"], new=each["to"], count=each["count"])
            for each in result.get("renumbered", [])
        ),
        conflicts=tuple(
            MergeConflict(
                id=each["id"],
                kind=each["kind"],
                base=item(each["base"]),
                ours=item(each["ours"]),
                theirs=item(each["theirs"]),
            )
            for each in result.get("conflicts", [])
        ),
        redacted=tuple(result.get("redacted", [])),
    )
