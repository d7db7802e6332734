"""`MemoryContent` and the wire: the one place that encodes and decodes content."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from autogen_core import Image
from autogen_core.memory import MemoryContent, MemoryMimeType

from ._errors import CorruptStoreError, refused
from ._json import check_integer, check_json, check_text, copy_json, dumps
from ._types import Commit, MemoryItem, Provenance

_PROVENANCE = ("agent_step", "observation", "tool_call", "source", "note")
_MIME_TYPES: dict[str, MemoryMimeType] = {each.value: each for each in MemoryMimeType}
_RESERVED = (b'"__bytes_b64__', b'"__image_b64__', b'"__json__')

_IMAGE_PIXELS = 89_478_485
"""What Pillow reads back without taking it for a decompression bomb."""

# What stands around the parts of an item as it is stored (see `EncodedItem.stored_bytes`).
_STORED_AROUND = len('{"content":,"mime_type":,"metadata":}')
_STORED_BASE64_AROUND = len('{"__bytes_b64__":}')
_STORED_WRAP = len('{"__json__":}')


@dataclass(frozen=True, slots=True)
class EncodedItem:
    """A new item as the wire takes it, and its bytes as stored, which are what the limit counts."""

    json: bytes
    stored_bytes: int


def encode_item(
    content: object, path: str, provenance: Provenance | None = None, event_time: int | None = None
) -> EncodedItem:
    """Encode a `MemoryContent`. `path` (`""`, or such as `contents[3].`) begins the paths in errors.

    Raises:
        InvalidContentError: For anything that could not come back as it is given.
    """
    if type(content) is not MemoryContent:
        what = type(content).__name__
        raise refused(
            path.rstrip(".") or "content", f"is a {what}, not exactly a MemoryContent; wrap it in one"
        )
    kind, value, stored = _encode_value(content.content, f"{path}content")
    mime_type = _encode_mime_type(content.mime_type, f"{path}mime_type")
    metadata = b"null"
    if content.metadata is not None:
        if type(content.metadata) is not dict:
            raise refused(f"{path}metadata", f"is a {type(content.metadata).__name__}, not a dict or None")
        check_json(content.metadata, f"{path}metadata")
        metadata = dumps(content.metadata)
    parts = [b'{"content":{"type":', kind, value, b'},"mime_type":', mime_type, b',"metadata":', metadata]
    if provenance is not None:
        parts += [b',"provenance":', dumps(provenance)]
    if event_time is not None:
        parts += [b',"event_time":', dumps(event_time)]
    return EncodedItem(b"".join([*parts, b"}"]), _STORED_AROUND + stored + len(mime_type) + len(metadata))


def _encode_value(value: object, path: str) -> tuple[bytes, bytes, int]:
    """The content's tag with its field's name, its JSON, and the bytes it has as stored."""
    kind = type(value)
    if kind is str:
        text = dumps(check_text(value, path))
        return b'"text","text":', text, len(text)
    if kind is dict:
        check_json(value, path)
        text = dumps(value)
        wrapped = _STORED_WRAP if any(reserved in text for reserved in _RESERVED) else 0
        return b'"json","json":', text, len(text) + wrapped
    if kind is bytes:
        text = b'"%b"' % base64.b64encode(cast("bytes", value))
        return b'"bytes","base64":', text, len(text) + _STORED_BASE64_AROUND
    if kind is Image:
        text = b'"%b"' % _encode_image(cast("Image", value), path)
        return b'"image","base64":', text, len(text) + _STORED_BASE64_AROUND
    raise refused(
        path, f"is a {kind.__name__}, not an exact str, bytes, dict or Image; convert it to one of these"
    )


def _encode_image(image: Image, path: str) -> bytes:
    width, height = image.image.size
    if width * height > _IMAGE_PIXELS:
        raise refused(
            path, f"is an image of {width} x {height} pixels, over {_IMAGE_PIXELS} in all; scale it down"
        )
    try:
        return image.to_base64().encode("ascii")
    except (OSError, ValueError, SystemError) as error:
        raise refused(path, f"is an image that can't be written as a PNG file: {error}") from error


def _encode_mime_type(mime_type: object, path: str) -> bytes:
    if type(mime_type) is MemoryMimeType:
        return dumps(mime_type.value)
    return dumps(check_text(mime_type, path))


def check_provenance(provenance: object, path: str) -> Provenance | None:
    """Check the fields that say how an item came to exist, and return a copy.

    Raises:
        InvalidContentError: Naming the field that is unknown or no text.
    """
    if provenance is None:
        return None
    if not isinstance(provenance, dict):
        raise refused(path, f"is a {type(provenance).__name__}, not a dict of {', '.join(_PROVENANCE)}")
    fields = cast("dict[object, object]", provenance)
    for name, value in fields.items():
        if name not in _PROVENANCE:
            raise refused(f"{path}.{name}", f"is no field of provenance; there are {', '.join(_PROVENANCE)}")
        check_text(value, f"{path}.{name}")
    return cast("Provenance", dict(fields))


def check_time(time: object, path: str) -> int | None:
    """Check a time in Unix milliseconds, or None.

    Raises:
        InvalidContentError: Naming `path`.
    """
    return None if time is None else check_integer(time, path)


class DecodedItem:
    """An item of an answer, decoded once; every caller gets objects of their own."""

    __slots__ = ("_content", "_copy", "_metadata", "_mime_type")

    def __init__(self, wire: dict[str, Any]) -> None:
        self._content, self._copy = _decode_value(wire)
        self._mime_type = _decode_mime_type(wire["mime_type"])
        self._metadata: dict[str, Any] | None = wire.get("metadata")

    def fresh(self) -> MemoryContent:
        """The item as a new object that shares nothing which can change."""
        return MemoryContent(
            content=self._copy(self._content),
            mime_type=self._mime_type,
            metadata=None if self._metadata is None else copy_json(self._metadata),
        )

    def rendered(self) -> str:
        """The item as `ListMemory` shows it to a model: Python's own `str()`."""
        return str(self._content)

    @property
    def pixel_bytes(self) -> int:
        """Bytes held beside what the answer's size tells: an image's pixels."""
        if isinstance(self._content, Image):
            width, height = self._content.image.size
            return width * height * 3
        return 0


def decode_memory_item(wire: dict[str, Any]) -> MemoryItem:
    """An item of an answer with all that the store knows about it. The caller owns every part of it."""
    if wire.get("redacted") is True:
        return MemoryItem(id=wire["id"], content=None, mime_type=None, redacted=True)
    return MemoryItem(
        id=wire["id"],
        content=_decode_value(wire)[0],
        mime_type=_decode_mime_type(wire["mime_type"]),
        metadata=wire.get("metadata"),
        provenance=wire.get("provenance"),
        event_time=wire.get("event_time"),
    )


def decode_commit(wire: dict[str, Any]) -> Commit:
    """A commit of an answer."""
    return Commit(
        id=wire["id"],
        parents=tuple(wire["parents"]),
        state=wire["state"],
        message=wire["message"],
        author=wire["author"],
        time=wire["time"],
    )


def _decode_value(wire: dict[str, Any]) -> tuple[Any, Callable[[Any], Any]]:
    """An item's content, and what makes a copy of it for a caller."""
    content = wire["content"]
    kind = content["type"]
    if kind == "text":
        return content["text"], _same
    if kind == "json":
        # An import may hold other JSON than objects, for which AutoGen has no content: then its text.
        value: Any = content["json"]
        if type(value) is not dict:
            return dumps(value).decode("utf-8"), _same
        return cast("dict[str, Any]", value), copy_json
    try:
        raw = base64.b64decode(content["base64"], validate=True)
        if kind == "bytes":
            return raw, _same
        if kind == "image":
            return Image.from_base64(content["base64"]), _copy_image
    except (binascii.Error, OSError) as error:
        raise CorruptStoreError(
            f"item {wire['id']} holds {kind} content that can't be read: {error}"
        ) from error
    raise CorruptStoreError(
        f"item {wire['id']} holds content of a kind that this client does not know: {kind!r}"
    )


def _same(value: Any) -> Any:
    return value


def _copy_image(image: Image) -> Image:
    return Image.from_pil(image.image)  # It converts to RGB, which copies the pixels.


def _decode_mime_type(text: str) -> MemoryMimeType | str:
    return _MIME_TYPES.get(text, text)
