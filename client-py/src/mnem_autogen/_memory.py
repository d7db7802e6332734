"""`MnemosyneMemory`: AutoGen's `Memory`, kept by the sidecar."""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Sequence
from typing import Any, cast

from autogen_core import CancellationToken, Component
from autogen_core.memory import Memory, MemoryContent, MemoryQueryResult, UpdateContextResult
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import SystemMessage
from pydantic import BaseModel, Field, SecretStr
from typing_extensions import Self

from . import _registry
from ._arguments import at_field, check_name, check_store, too_large
from ._branches import BranchMethods
from ._calls import Answer
from ._cancellation import cancellable
from ._content import (
    EncodedItem,
    check_provenance,
    check_time,
    encode_item,
)
from ._endpoint import read_endpoint
from ._errors import refused
from ._history import HistoryMethods
from ._json import check_text, dumps
from ._reading import Reading, cache, read
from ._settings import check_connect_timeout
from ._transfer import TransferMethods
from ._types import AddResult, ForgetResult, Provenance, PurgeResult, Stats

_KEY_BYTES = 12
"""Random bytes of an idempotency key: 16 characters in base64."""
_LOG_PAGE = 1000
_DEFAULT_NAME = "default_list_memory"
_DEFAULT_AUTHOR = "agent"


class MnemosyneMemoryConfig(BaseModel):
    """What `dump_component` writes and `load_component` reads. A token may be read, and is never written."""

    name: str = _DEFAULT_NAME
    """The memory's name in its store."""
    store: str | None = None
    """The store directory, absolute; None: `MNEM_ENDPOINT`, `MNEM_STORE` or `./.mnem` where it is loaded."""
    endpoint: str | None = None
    """A running sidecar's address, instead of `store`."""
    token: SecretStr | None = Field(default=None, exclude=True)
    """The endpoint's token; None: `MNEM_TOKEN` or `MNEM_TOKEN_FILE` where it is loaded."""
    connect_timeout: float | None = None
    """Seconds that a call waits for the endpoint; None: `MNEM_CONNECT_TIMEOUT`, or 10."""
    branch: str | None = None
    """The branch read and written; None: the memory's default branch."""
    author: str = _DEFAULT_AUTHOR
    """Who commits."""


class MnemosyneMemory(
    HistoryMethods, BranchMethods, TransferMethods, Memory, Component[MnemosyneMemoryConfig]
):
    """A memory that survives its process: every `add` and `clear` is a commit in a versioned store.

    It behaves as AutoGen's `ListMemory` does, and several objects, processes and machines' users may share
    one. Constructing does no I/O; the first call starts the sidecar on `store`, or connects to the one at
    `endpoint`; all memories of this process share that. A server that isn't up yet, or restarts, is waited
    for. It may be used from any event loop and thread, across `asyncio.run` calls, and after a fork.

    What a caller does to an object that was given or returned never changes the memory. A call that is
    cancelled after it was sent either takes effect as a whole or not at all.

    Args:
        name: The memory's name: 1 to 255 UTF-8 bytes without control characters.
        store: A directory, made when missing. A relative one is taken from the working directory now.
        endpoint: A running sidecar (`mnem-sidecar serve`), instead of `store`: `unix:///path/of/socket`,
            `tcp://host:port` or `tls://host:port`. With neither: `MNEM_ENDPOINT`, `MNEM_STORE`, `./.mnem`.
        token: For an endpoint; never part of a dump. None: `MNEM_TOKEN`, else what the file
            `MNEM_TOKEN_FILE` holds, if any, at each connecting.
        branch: None for the memory's default branch.
        author: Who commits. A server may know better, by the token.
        connect_timeout: Seconds that a call waits for an endpoint; None: `MNEM_CONNECT_TIMEOUT`, else 10.

    Raises:
        InvalidContentError: A `ValueError`; for a name, branch, author or token that can't be one.
        ValueError: For both `store` and `endpoint`, a `store` that is no directory path, an `endpoint` that
            is none, or a `connect_timeout` that is no number of seconds.
    """

    component_type = "memory"
    component_provider_override = "mnem_autogen.MnemosyneMemory"
    component_config_schema = MnemosyneMemoryConfig
    component_description = "A durable, versioned memory, kept by the mnem sidecar."

    def __init__(
        self,
        name: str = _DEFAULT_NAME,
        store: str | os.PathLike[str] | None = None,
        *,
        endpoint: str | None = None,
        token: str | None = None,
        branch: str | None = None,
        author: str = _DEFAULT_AUTHOR,
        connect_timeout: float | None = None,
    ) -> None:
        if store is not None and endpoint is not None:
            raise ValueError("give store (a directory) or endpoint (a running sidecar), not both")
        self._name = check_name(name)
        self._store = None if store is None else check_store(store)
        self._endpoint = None if endpoint is None else read_endpoint(endpoint)
        self._token = None if token is None else check_text(token, "token")
        self._branch = None if branch is None else check_text(branch, "branch")
        self._author = check_text(author, "author")
        self._connect_timeout = None if connect_timeout is None else check_connect_timeout(connect_timeout)
        self._link: _registry.Link | None = None
        self._user = _registry.new_user()

    # AutoGen's five, and its component.

    @property
    def name(self) -> str:
        """The memory's name in its store."""
        return self._name

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Add one system message with all memories to `model_context`; none when there are none.

        The text is byte for byte `ListMemory`'s.

        Returns:
            The memories that were added.
        """
        reading = await self._read("update_context")
        contents = reading.contents()
        if contents:
            await model_context.add_message(SystemMessage(content=reading.text()))
        return UpdateContextResult(memories=MemoryQueryResult(results=contents))

    async def query(
        self,
        query: str | MemoryContent = "",
        cancellation_token: CancellationToken | None = None,
        **kwargs: Any,
    ) -> MemoryQueryResult:
        """All memories, oldest first. `query` and `kwargs` are ignored, as `ListMemory` does."""
        _ = query, kwargs
        reading = await cancellable(self._read("query"), cancellation_token)
        return MemoryQueryResult(results=reading.contents())

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Store one memory. When this returns, it is on disk.

        Args:
            content: `str`, `bytes`, `Image`, or a `dict` of exact JSON types; so is its metadata.
            cancellation_token: Cancels the call; the memory may have landed all the same.

        Raises:
            InvalidContentError: For what could not come back as it is given; nothing is stored.
            TooLargeError: For an item over the sidecar's limit; nothing is stored.
        """
        await cancellable(self._add([encode_item(content, "")], {}), cancellation_token)

    async def clear(self) -> None:
        """Forget all memories, in one commit. Their history stays readable."""
        await self._write("clear", {})

    async def close(self) -> None:
        """Let go of the sidecar; with its last user here the connection ends, and a sidecar started for it.

        Waits for that; may be called twice. A closed memory opens itself again when it is used.
        """
        if self._link is not None:
            await self._link.release(self._user)

    def _to_config(self) -> MnemosyneMemoryConfig:
        return MnemosyneMemoryConfig(
            name=self._name,
            store=self._store,
            endpoint=None if self._endpoint is None else str(self._endpoint),
            branch=self._branch,
            author=self._author,
            connect_timeout=self._connect_timeout,
        )

    @classmethod
    def _from_config(cls, config: MnemosyneMemoryConfig) -> Self:
        return cls(
            config.name,
            config.store,
            endpoint=config.endpoint,
            token=None if config.token is None else config.token.get_secret_value(),
            branch=config.branch,
            author=config.author,
            connect_timeout=config.connect_timeout,
        )

    # Beyond them.

    async def add_many(
        self,
        contents: Sequence[MemoryContent],
        *,
        message: str | None = None,
        author: str | None = None,
        provenance: Provenance | None = None,
        event_time: int | None = None,
        time: int | None = None,
        idempotency_key: str | None = None,
    ) -> AddResult:
        """Store several memories in one commit: all of them, or none.

        Args:
            contents: At least one, at most what the sidecar takes (10,000 as it comes).
            message: The commit's; None for `add k items to NAME`.
            author: The commit's; None for this object's.
            provenance: How these items came to exist, the same for each.
            event_time: When it happened, Unix milliseconds, the same for each.
            time: The commit's, Unix milliseconds; None for now.
            idempotency_key: A repeated call with the same key, also from another process, changes nothing and
                gives the first result again. None for a new one each call.

        Raises:
            InvalidContentError: Naming the path, such as `contents[3].content.a`; nothing is stored.
            TooLargeError: For an item, or a number of items, over the sidecar's limit; nothing is stored.
            ConflictError: The key was used before for something else.
        """
        if not contents:
            raise refused("contents", "is empty; give at least one MemoryContent")
        given = check_provenance(provenance, "provenance")
        happened = check_time(event_time, "event_time")
        items = [encode_item(each, f"contents[{i}].", given, happened) for i, each in enumerate(contents)]
        fields: dict[str, Any] = {}
        for key, value in (("message", message), ("author", author), ("idempotency_key", idempotency_key)):
            if value is not None:
                fields[key] = check_text(value, key)
        if time is not None:
            fields["time"] = check_time(time, "time")
        result = await self._add(items, fields)
        return AddResult(commit=result["commit"], ids=tuple(result["ids"]))

    async def forget(self, *ids: str, at: str | int | None = None) -> ForgetResult:
        """Remove items by id, in one commit: all of them, or none. Their history stays readable.

        Args:
            ids: As `items` shows them; at least one.
            at: The commit where the ids were read: a number that names another item since then is not
                removed.

        Raises:
            NotFoundError: One of them is not there.
        """
        fields: dict[str, Any] = {"ids": [check_text(each, f"ids[{i}]") for i, each in enumerate(ids)]}
        if not ids:
            raise refused("ids", "is empty; give at least one id, or use clear() to forget all")
        result = await self._write("forget", {**fields, **at_field(at)})
        return ForgetResult(commit=result["commit"], forgotten=result["forgotten"])

    async def purge(self, *ids: str, at: str | int | None = None, reason: str) -> PurgeResult:
        """Take the content of items out of every version for good, and out of every file of the store.

        Their ids stay, and those of commits: who wrote them when can still be told. Backups, exports and
        copies in other memories are not reached. May be called again.

        Args:
            ids: At least one, at most 1,000.
            at: The commit where the ids were read. Without it they name what is live or, where nothing is,
                what was last called so.
            reason: Why; it is kept, and `verify` shows it.

        Raises:
            NotFoundError: One of them is not there.
            BusyError: The content is gone from the memory, and another process that reads keeps its last
                bytes in the database's log: call again later.
            UnauthorizedError: The token needs the verb `admin`.
        """
        if not ids:
            raise refused("ids", "is empty; give at least one id")
        named = [check_text(each, f"ids[{i}]") for i, each in enumerate(ids)]
        fields = {
            "ids": named,
            **at_field(at),
            "reason": check_text(reason, "reason"),
            "author": self._author,
        }
        link = self._linked()
        try:
            result = await self._ask("purge", fields)
        finally:
            # Readings of it here hold the content too.
            cache.drop_if(lambda key: isinstance(key, tuple) and key[:2] == (link, self._name))
        return PurgeResult(tuple(result["purged"]), result["epoch"], tuple(result["elsewhere"]))

    async def stats(self) -> Stats:
        """Numbers about this memory."""
        result = await self._ask("stats", {}, branch=False)
        return Stats(**{field: result[field] for field in Stats.__dataclass_fields__})

    # How they reach the sidecar.

    def __getstate__(self) -> dict[str, Any]:
        """What a copy in another process begins with: never the connection."""
        return {**self.__dict__, "_link": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin as another user of the same memory."""
        for name, value in state.items():
            setattr(self, name, value)
        self._user = _registry.new_user()

    def _linked(self) -> _registry.Link:
        """The link to the store or endpoint, this object counted as one of its users."""
        if self._link is None:
            self._link = _registry.find_link(self._store, self._endpoint, self._token, self._connect_timeout)
            weakref.finalize(self, self._link.drop, self._user).atexit = False
        self._link.retain(self._user, self._name)
        return self._link

    def _params(self, fields: dict[str, Any], branch: bool = True) -> dict[str, Any]:
        where = {"branch": self._branch} if branch and self._branch is not None else {}
        return {"memory": self._name, **where, **fields}

    async def _ask(self, method: str, fields: dict[str, Any], branch: bool = True) -> dict[str, Any]:
        answer = await self._linked().call(method, dumps(self._params(fields, branch)))
        return cast("dict[str, Any]", answer.result)

    async def _write(self, method: str, fields: dict[str, Any]) -> dict[str, Any]:
        return await self._ask(method, self._write_fields(fields))

    def _write_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Every write carries a key, so that it lands once however often it has to be sent."""
        key = secrets.token_urlsafe(_KEY_BYTES)
        return {"author": self._author, "idempotency_key": key, **fields}

    async def _add(self, items: list[EncodedItem], fields: dict[str, Any]) -> dict[str, Any]:
        link = self._linked()
        limits = await link.limits()
        if len(items) > limits.items_per_add:
            raise too_large(f"contents holds {len(items)} items", limits.items_per_add, len(items))
        for position, item in enumerate(items):
            if item.stored_bytes > limits.item_bytes:
                where = "content" if len(items) == 1 else f"contents[{position}]"
                raise too_large(
                    f"{where} has {item.stored_bytes} bytes", limits.item_bytes, item.stored_bytes
                )
        head = dumps(self._params(self._write_fields(fields)))
        params = b'%b,"items":[%b]}' % (head[:-1], b",".join([item.json for item in items]))
        answer = await link.call("add", params)
        return cast("dict[str, Any]", answer.result)

    async def _read(self, method: str) -> Reading:
        link = self._linked()

        async def call(asked: str, params: dict[str, Any]) -> Answer:
            return await link.call(asked, dumps(params))

        return await read(call, method, (link, self._name, self._branch), self._params({}))
