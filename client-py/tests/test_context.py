"""Reading costs what is new: an unchanged memory one small message, a longer one its new items."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from autogen_core.memory import ListMemory, MemoryContent
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.models import SystemMessage

from mnem_autogen import MnemosyneMemory, _reading, _registry
from mnem_autogen._calls import Answer
from support import contents, context_text, data, picture, text

TITLE = "\nRelevant memory content (in chronological order):\n"


class Wire:
    """Sees each listing that arrives: its mode, how many items came, how many bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, int, int]] = []
        real = _registry.Link.call

        async def call(link: _registry.Link, method: str, params: bytes) -> Answer:
            answer = await real(link, method, params)
            if "mode" in (answer.result or {}):
                result = cast("dict[str, Any]", answer.result)
                self.seen.append((result["mode"], len(result.get("items", [])), answer.size))
            return answer

        monkeypatch.setattr(_registry.Link, "call", call)

    def take(self) -> list[tuple[str, int, int]]:
        seen, self.seen = self.seen, []
        return seen


def test_an_unchanged_memory_costs_one_small_message_a_turn(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = Wire(monkeypatch)

    async def main() -> None:
        memory, reference = MnemosyneMemory(store=store), ListMemory()
        many = [data({"number": number, "text": "x" * 100}) for number in range(100)]
        await memory.add_many(many)
        context, expected = BufferedChatCompletionContext(50), BufferedChatCompletionContext(50)
        for content in many:
            await reference.add(content)
        for _ in range(10):
            await memory.update_context(context)
            await reference.update_context(expected)
        assert await context.get_messages() == await expected.get_messages()
        first, *rest = wire.take()
        assert first[:2] == ("full", 100)
        assert len(rest) == 9
        assert all(mode == "unchanged" and size < 1024 for mode, _, size in rest)

    asyncio.run(main())


def test_after_an_add_only_the_new_item_is_sent(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire(monkeypatch)

    async def main() -> None:
        memory, reference = MnemosyneMemory(store=store), ListMemory()
        for number in range(5):
            for each in (memory, reference):
                await each.add(data({"number": number}))
            assert await context_text(memory) == await context_text(reference)
            assert await contents(memory) == await contents(reference)
        modes = [(mode, items) for mode, items, _ in wire.take()]
        assert modes == [("full", 1), ("unchanged", 0)] + [("appended", 1), ("unchanged", 0)] * 4

    asyncio.run(main())


def test_clear_and_forget_and_what_another_object_did_show_at_once(store: Path) -> None:
    async def main() -> None:
        memory, other = MnemosyneMemory("one", store), MnemosyneMemory("one", store)
        result = await memory.add_many([text("a"), text("b"), text("c")])
        assert await context_text(other) == [f"{TITLE}1. a\n2. b\n3. c\n"]
        await other.forget(result.ids[1])
        assert await context_text(memory) == [f"{TITLE}1. a\n2. c\n"]
        await memory.clear()
        assert await context_text(other) == []
        await other.add(text("d"))
        assert await context_text(memory) == [f"{TITLE}1. d\n"]

    asyncio.run(main())


def test_the_result_names_what_was_added_to_the_context(store: Path) -> None:
    async def main() -> None:
        memory, reference = MnemosyneMemory(store=store), ListMemory()
        for each in (memory, reference):
            await each.add(MemoryContent(content="x", mime_type="own/type", metadata={"a": 1}))
        context = BufferedChatCompletionContext(5, initial_messages=[SystemMessage(content="before")])
        result = await memory.update_context(context)
        assert result == await reference.update_context(BufferedChatCompletionContext(5))
        assert (await context.get_messages())[0].content == "before"

    asyncio.run(main())


def test_an_image_is_shown_by_the_same_line_each_turn(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add(MemoryContent(content=picture(), mime_type="image/*"))
        first, second = await context_text(memory), await context_text(memory)
        assert first == second

    asyncio.run(main())


def test_a_listing_longer_than_one_answer_comes_in_parts(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = Wire(monkeypatch)

    async def main() -> None:
        memory, reference = MnemosyneMemory(store=store), ListMemory()
        for number in range(6):
            content = text(str(number) + "x" * (6 * 2**20))
            await memory.add(content)
            await reference.add(content)
        assert await context_text(memory) == await context_text(reference)
        parts = wire.take()
        assert len(parts) > 1, "36 MiB can't be one answer of 32 MiB"
        assert sum(items for _, items, _ in parts) == 6
        assert [item.content for item in await memory.items()] == [
            each.content for each in (await reference.query()).results
        ]

    asyncio.run(main())


def reading(size: int) -> _reading.Reading:
    return _reading.Reading("c" * 64, 0, (), size)


def test_the_cache_keeps_what_was_used_last_within_its_bytes() -> None:
    cache = _reading.ReadingCache(100)
    for key in "abc":
        cache.put(key, reading(40))
    assert [key for key in "abc" if cache.get(key) is not None] == ["b", "c"]
    cache.get("b")
    cache.put("d", reading(40))
    assert [key for key in "abcd" if cache.get(key) is not None] == ["b", "d"]
    cache.put("b", reading(101))
    assert [key for key in "abcd" if cache.get(key) is not None] == ["d"], (
        "what is too large is not kept, nor is its old form"
    )
    cache.put("d", reading(70))
    cache.put("e", reading(30))
    assert [key for key in "abcde" if cache.get(key) is not None] == ["d", "e"]
