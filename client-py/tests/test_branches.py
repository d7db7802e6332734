"""What was learnt on one branch and another can be compared, searched, and brought together."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from autogen_core.memory import MemoryContent

from mnem_autogen import (
    Branch,
    Change,
    ConflictError,
    InvalidContentError,
    InvalidRefError,
    MemoryItem,
    MnemosyneMemory,
    NotFoundError,
    Renumbering,
)
from support import text


async def _texts(memory: MnemosyneMemory) -> list[object]:
    return [item.content for item in await memory.items()]


def _id(number: int) -> str:
    return f"prefs:{number:010}"


def test_two_branches_each_keep_what_they_learn_and_a_merge_keeps_both(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("prefs", store)
        await memory.add(text("a"))
        first = await memory.head()
        assert first is not None
        assert await memory.branch("trial") == Branch("trial", first, default=False)
        trial = MnemosyneMemory("prefs", store, branch="trial", author="ann")
        await memory.add(text("ours"))
        await trial.add(text("theirs"))
        await trial.add(text("theirs too"))
        assert await _texts(memory) == ["a", "ours"]
        assert await _texts(trial) == ["a", "theirs", "theirs too"]

        merged = await memory.merge("trial")
        assert merged.status == "merged"
        assert merged.commit == await memory.head()
        assert merged.renumbered == (Renumbering(_id(1), _id(3), 2),)
        assert merged.conflicts == ()
        assert await _texts(memory) == ["a", "ours", "theirs", "theirs too"]
        commits = await memory.log()
        assert commits[0].message == "merge trial into main"
        assert len(commits[0].parents) == 2
        assert len(commits) == 5
        assert len(await memory.log(first_parent=True)) == 3

        blame = await memory.why(_id(3))
        assert (blame.commit.author, blame.item.content) == ("ann", "theirs")
        assert [entry.kind for entry in await memory.history(_id(3))] == ["added", "added"]

        assert (await memory.merge("trial")).status == "up_to_date"
        assert (await trial.merge("main")).status == "fast_forward"
        assert await _texts(trial) == await _texts(memory)

    asyncio.run(main())


def test_branches_are_listed_switched_and_deleted(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("prefs", store)
        assert await memory.branches() == []
        with pytest.raises(InvalidRefError):
            await memory.branch("trial")
        await memory.add(text("a"))
        await memory.branch("trial")
        with pytest.raises(ConflictError):
            await memory.branch("trial")
        with pytest.raises(InvalidContentError, match="name"):
            await memory.branch("no spaces")
        with pytest.raises(ConflictError, match="default"):
            await memory.delete_branch("main")
        await memory.switch("trial")
        await memory.add(text("b"))
        assert [(branch.name, branch.default) for branch in await memory.branches()] == [
            ("main", False),
            ("trial", True),
        ]
        assert await _texts(MnemosyneMemory("prefs", store, branch="main")) == ["a"]
        await memory.delete_branch("main")
        with pytest.raises(NotFoundError):
            await memory.delete_branch("main")
        with pytest.raises(NotFoundError):
            await memory.switch("main")
        assert [branch.name for branch in await memory.branches()] == ["trial"]

    asyncio.run(main())


def test_a_branch_begins_where_it_is_told(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("prefs", store)
        for number in range(3):
            await memory.add_many([text(str(number))], time=1000 * (number + 1))
        commits = await memory.log()
        assert (await memory.branch("by-id", commits[1].id[:12])).commit == commits[1].id
        assert (await memory.branch("by-time", 1500)).commit == commits[2].id
        with pytest.raises(InvalidRefError):
            await memory.branch("before", 1)
        on_branch = MnemosyneMemory("prefs", store, branch="by-time")
        assert (await on_branch.branch("from-branch")).commit == commits[2].id

    asyncio.run(main())


def test_diff_and_changed_tell_what_differs(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("prefs", store)
        await memory.add(text("a"))
        first = await memory.head()
        assert first is not None
        content: dict[str, Any] = {"b": 1.0}
        await memory.add(MemoryContent(content=content, mime_type="application/json"))
        await memory.forget(_id(0))
        second = await memory.head()
        assert second is not None
        changes = await memory.diff(first, second)
        assert [(change.id, change.kind) for change in changes] == [(_id(0), "removed"), (_id(1), "added")]
        assert changes[0].new is None
        assert changes[1].old is None
        assert changes[1].new is not None
        assert changes[1].new.content == content
        assert await memory.changed(second) == [Change(_id(0), "removed", changes[0].old, None)]
        assert await memory.diff(second, second) == []
        with pytest.raises(InvalidRefError):
            await memory.diff(first, "f" * 64)

    asyncio.run(main())


def test_bisect_finds_the_commit_that_a_predicate_begins_to_hold_at(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("prefs", store)
        for number in range(40):
            await memory.add(text(f"item {number}"))
            if number % 10 == 9:
                await memory.forget(_id(number - 3))
        commits = (await memory.log())[::-1]
        asked: list[int] = []

        def knows(state: dict[str, MemoryItem]) -> bool:
            asked.append(len(state))
            assert list(state) == sorted(state)
            return any(item.content == "item 26" for item in state.values()) or _id(30) in state

        found = await memory.bisect(knows)
        assert (await memory.show(found.id)).items[-1].content == "item 26"
        assert len(asked) <= 8
        assert await memory.bisect(knows, good=commits[5].id, bad=commits[-2].id) == found
        with pytest.raises(InvalidRefError, match="good"):
            await memory.bisect(knows, good=found.id)
        with pytest.raises(InvalidRefError, match="bad"):
            await memory.bisect(lambda _: False)
        with pytest.raises(ZeroDivisionError):
            await memory.bisect(lambda _: 1 / 0)
        assert await memory.bisect(lambda _: True) == commits[0]

    asyncio.run(main())


def test_verify_finds_a_sound_memory_sound(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("prefs", store)
        await memory.add(text("a"))
        result = await memory.verify()
        assert (result.ok, result.objects, result.problems, result.redacted) == (True, 4, (), ())
        assert await memory.verify(repair=True) == result

    asyncio.run(main())
