"""What comes back is what went in, and a model is shown what ListMemory would show it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from autogen_core import Image
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnem_autogen import MnemosyneMemory
from support import contents, context_text, data, end_sidecars, exact, kill_sidecar, picture, text


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("shared") / "store"
    end_sidecars()


_names = (f"memory {number}" for number in itertools.count())

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_keys = st.one_of(
    _texts,
    st.sampled_from(
        ["__bytes_b64__", "__image_b64__x", "__json__", "kind", "1", "10", "", "content", "type"]
    ),
)
_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.integers(-10, 10),
    st.floats(allow_nan=False, allow_infinity=False),
    _texts,
)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=12,
)
_objects = st.dictionaries(_keys, _values, max_size=4)
_mime_types = st.one_of(st.sampled_from(list(MemoryMimeType)), st.just("text/x-own"), _texts)
_contents = st.builds(
    MemoryContent,
    content=st.one_of(_texts, st.binary(max_size=40), _objects),
    mime_type=_mime_types,
    metadata=st.none() | _objects,
)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


NASTY: list[str | bytes | dict[str, Any]] = [
    "",
    "\n",
    " lead and trail \t\r\n",
    "emoji 👩‍👩‍👧 🏳️‍🌈",
    "שלום עולם \u202eمرحبا\u202c",  # noqa: RUF001
    "NUL \0 in it",
    "\u2028\u2029\ufeff\ufffd\ud7ff\ue000\U0010ffff",
    "é 漢 é",
    "x" * 1_000_000,
    "漢" * 400_000,
    b"",
    b"\x00\xff\xfe plain",
    bytes(range(256)) * 40,
    {},
    nested(50),
    nested(100),
    {"list": [[[[[]]]]], "empty": {}},
    {"__bytes_b64__": "AAAA"},
    {"__image_b64__": "AAAA"},
    {"__json__": {"__json__": 1}},
    {"__bytes_b64__x": 1, "b": 2},
    {"kind": "memory_node", "id": "x", "content": {"type": "text", "text": "no"}},
    {"int": 1, "float": 1.0, "list": [1, 1.0, 100, 100.0]},
    {"zero": [0, 0.0, -0.0]},
    {"big": [2**53 + 1, 2**63, 2**64 - 1, -(2**63)]},
    {"small": [1e-7, 5e-324, 2.2250738585072014e-308]},
    {"large": [1e15, 1e16, 1e21, 1e22, 1.7976931348623157e308, 123456789012345680.0]},
    {"none": None, "true": True, "false": False},
    {"z": 1, "a": 2, "10": 3, "2": 4, "": 5},
    {"é": "k", "漢\0": "n"},
]


def test_every_awkward_content_comes_back_as_it_went_in(store: Path) -> None:
    async def main() -> None:
        memory, reference = MnemosyneMemory("nasty", store), ListMemory()
        for value in NASTY:
            for each in (memory, reference):
                await each.add(MemoryContent(content=value, mime_type="x/y", metadata={"of": 1.0}))
        assert await contents(memory) == await contents(reference)
        assert await context_text(memory) == await context_text(reference)
        kill_sidecar()
        assert await contents(MnemosyneMemory("nasty", store)) == await contents(reference)
        assert await context_text(memory) == await context_text(reference)

    asyncio.run(main())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(given_contents=st.lists(_contents, max_size=6), batches=st.booleans())
def test_any_list_of_contents_reads_as_it_does_from_list_memory(
    shared_store: Path, given_contents: list[MemoryContent], batches: bool
) -> None:
    async def main() -> None:
        memory, reference = MnemosyneMemory(next(_names), shared_store), ListMemory()
        for content in given_contents:
            await reference.add(content)
            if not batches:
                await memory.add(content)
        if batches and given_contents:
            await memory.add_many(given_contents)
        assert await contents(memory) == await contents(reference)
        assert await context_text(memory) == await context_text(reference)

    asyncio.run(main())


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(given_contents=st.lists(_contents, min_size=1, max_size=6))
def test_any_list_of_contents_is_there_after_kill_9(
    shared_store: Path, given_contents: list[MemoryContent]
) -> None:
    async def main() -> None:
        name, reference = next(_names), ListMemory()
        memory = MnemosyneMemory(name, shared_store)
        for content in given_contents:
            await reference.add(content)
            await memory.add(content)
        kill_sidecar()
        # One object that was there before, which remembers nothing yet, and one that is new.
        for each in (memory, MnemosyneMemory(name, shared_store)):
            assert await contents(each) == await contents(reference)
            assert await context_text(each) == await context_text(reference)

    asyncio.run(main())


def test_an_image_comes_back_with_the_same_pixels(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        image = picture()
        await memory.add(
            MemoryContent(content=image, mime_type=MemoryMimeType.IMAGE, metadata={"of": "a test"})
        )
        (back,) = (await memory.query()).results
        assert isinstance(back.content, Image)
        assert back.content.image.tobytes() == image.image.tobytes()
        assert back.content.image.size == image.image.size
        assert back.mime_type is MemoryMimeType.IMAGE
        assert back.metadata == {"of": "a test"}
        (shown,) = await context_text(memory)
        assert shown.startswith(
            "\nRelevant memory content (in chronological order):\n1. <autogen_core._image.Image object at 0x"
        )

    asyncio.run(main())


@pytest.mark.parametrize(
    ("given_type", "type_back"),
    [
        (MemoryMimeType.MARKDOWN, MemoryMimeType.MARKDOWN),
        ("text/markdown", MemoryMimeType.MARKDOWN),
        ("image/*", MemoryMimeType.IMAGE),
        ("image/png", "image/png"),
        ("", ""),
    ],
)
def test_a_mime_type_that_autogen_knows_comes_back_as_its_enum(
    store: Path, given_type: MemoryMimeType | str, type_back: MemoryMimeType | str
) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add(MemoryContent(content="x", mime_type=given_type))
        (back,) = (await memory.query()).results
        assert back.mime_type == type_back
        assert type(back.mime_type) is type(type_back)

    asyncio.run(main())


def test_no_metadata_and_empty_metadata_stay_apart(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add(MemoryContent(content="none", mime_type="text/plain"))
        await memory.add(MemoryContent(content="empty", mime_type="text/plain", metadata={}))
        assert [each.metadata for each in (await memory.query()).results] == [None, {}]

    asyncio.run(main())


def test_an_empty_memory_adds_no_message_and_creates_nothing(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("nobody", store)
        assert await contents(memory) == []
        assert await context_text(memory) == []
        assert await memory.head() is None
        assert await memory.log() == []
        assert await memory.items() == []

    asyncio.run(main())


def test_what_a_caller_does_to_results_shows_in_no_later_answer(store: Path) -> None:
    async def main() -> None:
        memory, reference = MnemosyneMemory(store=store), ListMemory()
        for each in (memory, reference):
            await each.add(MemoryContent(content={"deep": [{"er": 1}]}, mime_type="m", metadata={"m": [1]}))
            await each.add(text("plain"))
        await memory.add(MemoryContent(content=picture(), mime_type=MemoryMimeType.IMAGE))
        before = await contents(memory)
        shown = await context_text(memory)
        for _ in range(2):
            results = (await memory.query()).results
            spoilt, plain, image = results
            assert isinstance(spoilt.content, dict)
            assert isinstance(image.content, Image)
            assert spoilt.metadata is not None
            spoilt.content["deep"][0]["er"] = "spoilt"
            spoilt.content["new"] = 1
            spoilt.metadata["m"].append(2)
            spoilt.mime_type = "spoilt"
            plain.content = "spoilt"
            plain.metadata = {"spoilt": True}
            image.content.image.putpixel((0, 0), (9, 9, 9))
            results.clear()
            assert await contents(memory) == before
            assert await context_text(memory) == shown

    asyncio.run(main())


def test_what_a_caller_does_to_a_content_after_add_changes_nothing(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        content = data({"a": [1]})
        as_added = exact(content)
        await memory.add(content)
        assert isinstance(content.content, dict)
        content.content["a"].append("later")
        assert await contents(memory) == [as_added]

    asyncio.run(main())
