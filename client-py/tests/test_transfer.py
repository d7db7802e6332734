"""A memory leaves as a file and comes back the same."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from autogen_core.memory import MemoryContent

from mnem_autogen import ConflictError, CorruptStoreError, ImportResult, MnemosyneMemory, NotFoundError
from support import text


def test_an_export_is_imported_under_another_name_with_all_that_there_was(
    store: Path, tmp_path: Path
) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("prefs", store)
        content: dict[str, Any] = {"z": 1, "a": [1.0, "é\u2028"]}
        await memory.add_many(
            [text("a"), MemoryContent(content=content, mime_type="application/json")],
            provenance={"source": "mail"},
        )
        await memory.branch("trial")
        await memory.add(text("b"))
        await MnemosyneMemory("prefs", store, branch="trial").add(text("c"))
        await memory.merge("trial")
        file = tmp_path / "prefs.jsonl"
        await memory.export(file)
        assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["prefs.jsonl"]

        copy = MnemosyneMemory("copy", tmp_path / "another store")
        head = await memory.head()
        assert head is not None
        assert await copy.import_(file) == ImportResult(head, 4)
        assert await copy.log() == await memory.log()
        assert [item.id for item in await copy.items()] == [item.id for item in await memory.items()]
        assert (await copy.items())[1].content == content
        again = tmp_path / "again.jsonl"
        await copy.export(again)
        assert again.read_bytes() == file.read_bytes()
        assert (await copy.verify()).ok
        with pytest.raises(ConflictError, match="already"):
            await copy.import_(file)

    asyncio.run(main())


def test_what_is_no_sound_export_is_refused_whole(store: Path, tmp_path: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("prefs", store)
        await memory.add(text("a"))
        file = tmp_path / "prefs.jsonl"
        await memory.export(file)
        file.write_text(file.read_text().replace('"content":"a"', '"content":"z"'))
        copy = MnemosyneMemory("copy", store)
        with pytest.raises(CorruptStoreError, match="Line 2"):
            await copy.import_(file)
        assert await copy.head() is None
        with pytest.raises(FileNotFoundError):
            await copy.import_(tmp_path / "nothing")
        with pytest.raises(NotFoundError):
            await MnemosyneMemory("nobody", store).export(tmp_path / "nobody.jsonl")
        assert not (tmp_path / "nobody.jsonl").exists()

    asyncio.run(main())
