"""What can't come back as it is given is refused before it is sent, by path, and nothing is stored."""

from __future__ import annotations

import asyncio
import collections
import datetime
import decimal
import enum
from pathlib import Path
from typing import Any

import pytest
from autogen_core.memory import MemoryContent, MemoryMimeType

from mnem_autogen import InvalidContentError, MnemError, MnemosyneMemory, TooLargeError
from support import contents, data, text


class Colour(str, enum.Enum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class OwnText(str):
    __slots__ = ()


class OwnContent(MemoryContent):
    more: str = "lost"


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"a": []}
    value["a"].append(value)
    return value


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


REFUSED: list[tuple[dict[Any, Any], str]] = [
    ({"a": [0, 1, 2, {"b": float("nan")}]}, "content.a[3].b"),
    ({"a": float("inf")}, "content.a"),
    ({"a": float("-inf")}, "content.a"),
    ({"a": 2**64}, "content.a"),
    ({"a": -(2**63) - 1}, "content.a"),
    ({"a": {1, 2}}, "content.a"),
    ({"a": frozenset({1})}, "content.a"),
    ({"a": [(1, 2)]}, "content.a[0]"),
    ({"a": datetime.date(2026, 1, 2)}, "content.a"),
    ({"a": datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)}, "content.a"),
    ({"a": decimal.Decimal("1.5")}, "content.a"),
    ({"a": b"bytes"}, "content.a"),
    ({"a": {1: "int key"}}, "content.a[1]"),
    ({"a": {None: "none key"}}, "content.a[None]"),
    ({"a": {Colour.RED: 1}}, "content.a[<Colour.RED: 'red'>]"),
    ({"a": Colour.RED}, "content.a"),
    ({"a": Number.ONE}, "content.a"),
    ({"a": OwnText("x")}, "content.a"),
    ({"a": collections.OrderedDict(b=1)}, "content.a"),
    ({"a": MemoryMimeType.TEXT}, "content.a"),
    ({"a": object()}, "content.a"),
    ({"a": "lone \ud800"}, "content.a"),
    ({"a": {"\udfff": 1}}, 'content.a["\\udfff"]'),
    ({"a b": {"c-d": float("nan")}}, 'content["a b"]["c-d"]'),
    (cyclic(), "content.a[0]"),
    (nested(101), "content" + ".in" * 100),
]


@pytest.mark.parametrize(("value", "path"), REFUSED, ids=[path for _, path in REFUSED])
def test_a_value_that_json_cannot_hold_is_refused_with_its_path(
    store: Path, value: dict[Any, Any], path: str
) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        for place in ("content", "metadata"):
            content = data({}) if place == "content" else text("x")
            setattr(content, place, value)
            with pytest.raises(InvalidContentError) as caught:
                await memory.add(content)
            assert caught.value.path == path.replace("content", place, 1)
            assert caught.value.path in str(caught.value)
            assert isinstance(caught.value, ValueError)
            assert isinstance(caught.value, MnemError)

    asyncio.run(main())
    assert not store.exists(), "a refusal needs no sidecar"


def content_with(**fields: object) -> MemoryContent:
    content = text("x")
    for name, value in fields.items():
        setattr(content, name, value)
    return content


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (content_with(content="a\ud800b"), "content"),
        (content_with(content=OwnText("x")), "content"),
        (content_with(content=bytearray(b"x")), "content"),
        (content_with(content=["a list"]), "content"),
        (content_with(content=None), "content"),
        (content_with(mime_type="text/\udc00"), "mime_type"),
        (content_with(mime_type=7), "mime_type"),
        (content_with(metadata=[1]), "metadata"),
        (OwnContent(content="x", mime_type="text/plain"), "content"),
        ("just a string", "content"),
    ],
)
def test_a_content_of_another_kind_is_refused(store: Path, content: Any, path: str) -> None:
    with pytest.raises(InvalidContentError) as caught:
        asyncio.run(MnemosyneMemory(store=store).add(content))
    assert caught.value.path == path


def test_one_bad_item_keeps_the_whole_batch_out(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add(text("before"))
        with pytest.raises(InvalidContentError) as caught:
            await memory.add_many([text("good"), data({"a": [float("nan")]})])
        assert caught.value.path == "contents[1].content.a[0]"
        assert len(await contents(memory)) == 1
        assert len(await memory.log()) == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"provenance": {"source": "a\ud800"}}, "provenance.source"),
        ({"provenance": {"sauce": "x"}}, "provenance.sauce"),
        ({"provenance": {"note": 1}}, "provenance.note"),
        ({"provenance": "me"}, "provenance"),
        ({"event_time": 1.5}, "event_time"),
        ({"event_time": True}, "event_time"),
        ({"time": "now"}, "time"),
        ({"message": "a\ud800"}, "message"),
        ({"author": b"me"}, "author"),
        ({"idempotency_key": 7}, "idempotency_key"),
    ],
)
def test_what_goes_with_a_batch_is_checked_too(store: Path, arguments: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidContentError) as caught:
        asyncio.run(MnemosyneMemory(store=store).add_many([text("x")], **arguments))
    assert caught.value.path == path


def test_an_empty_batch_and_an_empty_forget_are_refused(store: Path) -> None:
    memory = MnemosyneMemory(store=store)
    with pytest.raises(InvalidContentError, match="contents is empty"):
        asyncio.run(memory.add_many([]))
    with pytest.raises(InvalidContentError, match="ids is empty"):
        asyncio.run(memory.forget())


@pytest.mark.parametrize(
    "name", ["", "a\nb", "a\x00", "a\x7f", "a\x85", "n\ud800", "x" * 256, "漢" * 86, 7, None]
)
def test_a_name_out_of_rule_is_refused_by_the_constructor(name: Any) -> None:
    with pytest.raises(ValueError, match="name"):
        MnemosyneMemory(name)


@pytest.mark.parametrize(
    "name", ["x" * 255, "漢" * 85, "a/../b", ".", "con", "a:b", " ", "👩‍👩‍👧", "\u00e9", "e\u0301"]
)
def test_any_other_name_is_a_memory_of_its_own(store: Path, name: str) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(name, store)
        await memory.add(text(name))
        assert [item.content for item in await memory.items()] == [name]
        assert (await memory.items())[0].id == f"{name}:0000000000"

    asyncio.run(main())
    assert [path.name for path in store.parent.iterdir()] == ["store"]


def test_an_item_over_the_limit_is_refused_and_the_connection_stays_usable(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        for content in (
            text("x" * 9 * 2**20),
            data({"a": ["x" * 9 * 2**20]}),
            content_with(content=b"x" * 7 * 2**20),
        ):
            with pytest.raises(TooLargeError) as caught:
                await memory.add(content)
            assert caught.value.data["limit"] == 8 * 2**20
            assert caught.value.data["actual"] > 8 * 2**20
        with pytest.raises(TooLargeError, match="contents holds 10001 items"):
            await memory.add_many([text("x")] * 10_001)
        with pytest.raises(TooLargeError, match="this request has"):
            await memory.add_many([text("x" * 7 * 2**20)] * 5)
        await memory.add(text("fits"))
        assert len(await contents(memory)) == 1

    asyncio.run(main())


def test_the_largest_item_that_fits_is_taken(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        around = len('{"content":"","mime_type":"text/plain","metadata":null}')
        with pytest.raises(TooLargeError):
            await memory.add(text("x" * (8 * 2**20 - around + 1)))
        await memory.add(text("x" * (8 * 2**20 - around)))
        assert len(await contents(memory)) == 1

    asyncio.run(main())


def test_places_in_history_are_checked(store: Path) -> None:
    memory = MnemosyneMemory(store=store)
    for at in (True, 1.5, b"main", "a\ud800"):
        with pytest.raises(InvalidContentError) as caught:
            asyncio.run(memory.show(at))  # type: ignore[arg-type]
        assert caught.value.path == "at"
