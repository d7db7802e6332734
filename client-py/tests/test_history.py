"""Every belief can be traced: commits, items, and who gave an item its value."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from autogen_core import Image
from autogen_core.memory import MemoryContent, MemoryMimeType

from mnem_autogen import (
    ConflictError,
    InvalidRefError,
    MemoryItem,
    MnemosyneMemory,
    NotFoundError,
)
from support import contents, picture, text


def test_a_batch_is_one_commit_with_all_that_was_said_about_it(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("prefs", store)
        result = await memory.add_many(
            [text("a"), MemoryContent(content=b"\x00", mime_type="x/y", metadata={"m": 1.0})],
            message="two at once",
            author="ann",
            provenance={"source": "mail", "note": ""},
            event_time=1_700_000_000_123,
            time=1_700_000_000_456,
        )
        assert result.ids == ("prefs:0000000000", "prefs:0000000001")
        assert await memory.head() == result.commit
        (commit,) = await memory.log()
        assert (commit.id, commit.parents) == (result.commit, ())
        assert (commit.message, commit.author, commit.time) == ("two at once", "ann", 1_700_000_000_456)
        assert len(commit.state) == 64
        assert await memory.items() == [
            MemoryItem(
                "prefs:0000000000",
                "a",
                MemoryMimeType.TEXT,
                provenance={"source": "mail", "note": ""},
                event_time=1_700_000_000_123,
            ),
            MemoryItem(
                "prefs:0000000001",
                b"\x00",
                "x/y",
                metadata={"m": 1.0},
                provenance={"source": "mail", "note": ""},
                event_time=1_700_000_000_123,
            ),
        ]

    asyncio.run(main())


def test_adds_are_committed_under_the_objects_author(store: Path) -> None:
    async def main() -> None:
        await MnemosyneMemory("m", store, author="ann").add(text("a"))
        await MnemosyneMemory("m", store).add(text("b"))
        await MnemosyneMemory("m", store, author="ben").clear()
        commits = await MnemosyneMemory("m", store).log()
        assert [(each.message, each.author) for each in commits] == [
            ("forget 3 nodes", "ben"),
            ("add item to m", "agent"),
            ("add item to m", "ann"),
        ]

    asyncio.run(main())


def test_a_cleared_memory_is_still_there_at_the_commit_before(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("m", store)
        await memory.add(text("kept"))
        await memory.add(MemoryContent(content=picture(), mime_type=MemoryMimeType.IMAGE))
        before = await memory.head()
        assert before is not None
        await memory.clear()
        assert await contents(memory) == []
        snapshot = await memory.show(before)
        assert snapshot.commit.id == before
        assert [item.id for item in snapshot.items] == ["m:0000000000", "m:0000000001"]
        assert isinstance(snapshot.items[1].content, Image)
        assert [item.id for item in await memory.items(before[:12])] == [item.id for item in snapshot.items]
        blame = await memory.why("m:0000000000", at=before)
        assert blame.item.content == "kept"
        assert blame.commit.id == (await memory.log())[-1].id
        with pytest.raises(NotFoundError):
            await memory.why("m:0000000000")

    asyncio.run(main())


def test_forget_removes_all_named_items_or_none(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("m", store)
        ids = (await memory.add_many([text("a"), text("b"), text("c")])).ids
        with pytest.raises(NotFoundError):
            await memory.forget(ids[0], "m:0000000009")
        assert len(await memory.items()) == 3
        result = await memory.forget(ids[0], ids[2])
        assert result.forgotten == 2
        assert result.commit == await memory.head()
        assert [item.content for item in await memory.items()] == ["b"]
        await memory.add(text("d"))
        assert [item.id for item in await memory.items()] == ["m:0000000001", "m:0000000003"]

    asyncio.run(main())


def test_log_gives_everything_or_as_much_as_is_asked(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("m", store)
        await asyncio.gather(*(memory.add(text(str(number))) for number in range(1203)))
        commits = await memory.log()
        assert len(commits) == 1203
        assert [each.parents for each in commits[:-1]] == [(after.id,) for after in commits[1:]]
        assert await memory.log(3) == commits[:3]
        assert await memory.log(1100) == commits[:1100]
        assert await memory.log(0) == []
        assert await memory.log(2, at=commits[5].id) == commits[5:7]
        assert await memory.log(at=commits[-1].id[:10], first_parent=True) == commits[-1:]
        stats = await memory.stats()
        assert (stats.memory, stats.commit, stats.commits, stats.items) == ("m", commits[0].id, 1203, 1203)

    asyncio.run(main())


def test_a_time_names_the_commit_that_was_the_head_then(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("m", store)
        for number in range(3):
            await memory.add_many([text(str(number))], time=1000 * number + 1000)
        assert [item.content for item in await memory.items(2999)] == ["0", "1"]
        assert (await memory.show(3000)).commit.time == 3000
        assert [each.time for each in await memory.log(since=2000)] == [3000, 2000]

    asyncio.run(main())


def test_a_commit_that_is_not_there_is_an_invalid_ref(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("m", store)
        with pytest.raises(InvalidRefError):
            await memory.show()
        await memory.add(text("a"))
        with pytest.raises(InvalidRefError) as caught:
            await memory.show("ffffffff")
        assert caught.value.kind == "invalid_ref"
        assert not caught.value.retryable

    asyncio.run(main())


def test_a_branch_that_is_not_there_is_not_found(store: Path) -> None:
    async def main() -> None:
        await MnemosyneMemory("m", store).add(text("a"))
        with pytest.raises(NotFoundError):
            await MnemosyneMemory("m", store, branch="nowhere").query()

    asyncio.run(main())


def test_a_repeated_idempotency_key_gives_the_first_answer_again(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("m", store)
        first = await memory.add_many([text("once")], idempotency_key="key-1")
        await memory.add(text("between"))
        assert await memory.add_many([text("once")], idempotency_key="key-1") == first
        assert [item.content for item in await memory.items()] == ["once", "between"]
        with pytest.raises(ConflictError):
            await memory.add_many([text("other")], idempotency_key="key-1")
        await memory.add(text("equal"))
        await memory.add(text("equal"))
        assert len(await memory.items()) == 4

    asyncio.run(main())
