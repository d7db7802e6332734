"""Typed errors: one class a kind of the wire's errors, and `SidecarError` for a sidecar that can't be had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


class MnemError(Exception):
    """Anything that went wrong between an application and its memory.

    The message is a sentence that says what to do; decide on the class (or `kind`), never on the text.

    Attributes:
        kind: The wire's word for the error, or None where the client itself raised it.
        retryable: Whether the same call may succeed when made again unchanged.
        data: Facts beside the sentence, such as `limit` and `actual` of a value that is too large.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str | None = None,
        retryable: bool = False,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.data: dict[str, Any] = dict(data or {})


class NotFoundError(MnemError):
    """There is no such item, memory or branch."""


class InvalidRefError(MnemError):
    """A commit-ish is unknown or ambiguous; `data["candidates"]` lists what it could mean."""


class ConflictError(MnemError):
    """An idempotency key was used before with another request, or a merge stands in the way."""


class BusyError(MnemError):
    """Another process held the store past the sidecar's bound; the call may be made again."""


class StoreIoError(MnemError):
    """The store's disk failed the sidecar: full, read-only, no permission (`data["reason"]`)."""


class CorruptStoreError(MnemError):
    """The store holds something it can't have written; the sidecar writes to it no more."""


class TooLargeError(MnemError):
    """A value is over a limit: `data["limit"]` and `data["actual"]`, in bytes (or items, for a batch)."""


class UnauthorizedError(MnemError):
    """The token is missing, wrong, withdrawn, or not for this memory or verb."""


class InvalidContentError(MnemError, ValueError):
    """A value can't be stored, or isn't what the call takes.

    Attributes:
        path: Where the value is, such as `content.a[3].b`.
        reason: What is wrong with it.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str = "",
        reason: str = "",
        kind: str | None = "invalid_params",
        retryable: bool = False,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, kind=kind, retryable=retryable, data=data)
        self.path = path
        self.reason = reason


class ProtocolError(MnemError):
    """Client and sidecar did not understand each other: versions that don't fit, or a bug."""


class SidecarError(MnemError):
    """No sidecar could be had: one could not be started, or an endpoint not be reached.

    Says which program or endpoint, what it printed last or how long it was waited for, and the fix.
    """


def refused(path: str, reason: str) -> InvalidContentError:
    """The error for a value at `path` that can't be stored."""
    return InvalidContentError(f"{path} {reason}", path=path, reason=reason, data={"path": path})


_CLASSES: dict[str, type[MnemError]] = {
    "not_found": NotFoundError,
    "invalid_ref": InvalidRefError,
    "conflict": ConflictError,
    "busy": BusyError,
    "store_io": StoreIoError,
    "corrupt_store": CorruptStoreError,
    "too_large": TooLargeError,
    "unauthorized": UnauthorizedError,
}


def from_wire(error: object) -> MnemError:
    """The exception for a JSON-RPC error object. Unknown kinds are `ProtocolError`."""
    fields = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    message = str(fields.get("message", "the sidecar answered with an error that has no message"))
    raw = fields.get("data")
    data = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    kind = data.get("kind")
    retryable = data.get("retryable") is True
    if kind == "invalid_params":
        path, reason = str(data.get("path", "")), str(data.get("reason", ""))
        return InvalidContentError(message, path=path, reason=reason, retryable=retryable, data=data)
    if isinstance(kind, str):
        return _CLASSES.get(kind, ProtocolError)(message, kind=kind, retryable=retryable, data=data)
    return ProtocolError(f"{message} (JSON-RPC error {fields.get('code')})", data=data)
