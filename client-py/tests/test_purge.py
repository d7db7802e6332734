"""A purge takes content away for good, and leaves who did what when."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from autogen_core.model_context import UnboundedChatCompletionContext

from mnem_autogen import InvalidContentError, MnemosyneMemory, NotFoundError, PurgeResult
from support import text


def test_a_purged_item_is_gone_everywhere_and_its_commit_stays(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("m", store, author="ann")
        added = await memory.add_many([text("a"), text("hunter2"), text("b")])
        before = await memory.log()
        assert len((await memory.query()).results) == 3
        result = await memory.purge(added.ids[1], at=added.commit, reason="a password")
        assert result == PurgeResult((added.ids[1],), 1, ())
        assert [each.content for each in (await memory.query()).results] == ["a", "b"]
        context = UnboundedChatCompletionContext()
        await memory.update_context(context)
        assert "hunter2" not in str(await context.get_messages())
        items = await memory.items()
        assert [(each.content, each.redacted) for each in items] == [("a", False), (None, True), ("b", False)]
        blame = await memory.why(added.ids[1])
        assert (blame.commit.id, blame.item.redacted) == (added.commit, True)
        assert await memory.log() == before
        verified = await memory.verify()
        assert verified.ok
        assert verified.redacted == (added.ids[1],)
        assert [(each.id, each.author, each.reason) for each in verified.purged] == [
            (added.ids[1], "ann", "a password")
        ]
        await memory.close()
        left = [each for each in store.rglob("*") if each.is_file() and b"hunter2" in each.read_bytes()]
        assert left == []

    asyncio.run(main())


def test_another_object_and_another_process_see_that_it_is_gone(store: Path) -> None:
    async def main() -> None:
        memory, other = MnemosyneMemory("m", store), MnemosyneMemory("m", store)
        await memory.add(text("a"))
        await memory.add(text("hunter2"))
        assert len((await other.query()).results) == 2
        await memory.purge((await memory.items())[1].id, reason="a password")
        assert [each.content for each in (await other.query()).results] == ["a"]
        await other.add(text("c"))
        assert [each.content for each in (await memory.query()).results] == ["a", "c"]

    asyncio.run(main())


def test_what_is_not_there_or_has_no_reason_is_refused(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("m", store)
        with pytest.raises(NotFoundError):
            await memory.purge("m:0000000000", reason="none")
        await memory.add(text("a"))
        with pytest.raises(InvalidContentError, match="ids"):
            await memory.purge(reason="none")
        with pytest.raises(InvalidContentError, match="reason"):
            await memory.purge("m:0000000000", reason="")
        assert len(await memory.items()) == 1

    asyncio.run(main())
