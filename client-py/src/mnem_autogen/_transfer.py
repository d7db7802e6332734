"""A memory's whole history, out to a file and in from one."""

from __future__ import annotations

import asyncio
import contextlib
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import IO, Any, Literal

from ._errors import ConflictError, refused
from ._types import ImportResult

_PIECE = 2 * 1024 * 1024
"""Characters of a file that are sent at once."""
_RESTARTS = 3


class TransferMethods(ABC):
    """The methods of `MnemosyneMemory` that move it as a whole."""

    _name: str

    @abstractmethod
    async def _ask(self, method: str, fields: dict[str, Any], branch: bool = True) -> dict[str, Any]:
        """Ask the sidecar about this memory."""

    async def export(self, path: str | os.PathLike[str], format: Literal["changes"] = "changes") -> None:  # noqa: A002
        """Write every commit and branch to a file, as JSON Lines.

        It is the history as it was when this began, whatever is written meanwhile. The file appears when
        it is whole; one that is there is replaced.

        Raises:
            NotFoundError: Nobody has written to the memory.
            OSError: The file can't be written.
        """
        if format != "changes":
            raise refused("format", 'must be "changes"')
        target = Path(path)
        beside = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            with await asyncio.to_thread(beside.open, "w", encoding="utf-8", newline="\n") as file:
                fields: dict[str, Any] = {}
                while True:
                    part = await self._ask("export", fields, branch=False)
                    await asyncio.to_thread(file.write, part["text"])
                    if "next" not in part:
                        break
                    fields["after"] = part["next"]
            await asyncio.to_thread(beside.replace, target)
        finally:
            with contextlib.suppress(OSError):
                beside.unlink()

    async def import_(self, path: str | os.PathLike[str]) -> ImportResult:
        """Make this memory what an export holds: all of it, or nothing. Every id is derived again.

        Item ids keep the name that they have in the export, whatever this memory is called.

        Raises:
            CorruptStoreError: Naming the first line that is not what it must be.
            ConflictError: There is a memory of this name already.
            UnauthorizedError: The token needs the verb `admin`.
            OSError: The file can't be read.
        """
        for attempt in range(_RESTARTS):
            with await asyncio.to_thread(open, path, encoding="utf-8", newline="\n") as file:
                try:
                    return await self._send(file)
                except ConflictError as error:
                    # The connection was lost between two parts: what had come is gone with it.
                    if error.data.get("reason") != "import_part" or attempt == _RESTARTS - 1:
                        raise
        raise AssertionError("unreachable")

    async def _send(self, file: IO[str]) -> ImportResult:
        piece = await asyncio.to_thread(file.read, _PIECE)
        for part in range(2**53):
            following = await asyncio.to_thread(file.read, _PIECE)
            fields: dict[str, Any] = {"part": part, "text": piece}
            if following:
                fields["more"] = True
            answer = await self._ask("import", fields, branch=False)
            if not following:
                return ImportResult(commit=answer["commit"], commits=answer["commits"])
            piece = following
        raise AssertionError("unreachable")
