"""AutoGen's cancellation tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from autogen_core import CancellationToken

_T = TypeVar("_T")


async def cancellable(operation: Coroutine[Any, Any, _T], token: CancellationToken | None) -> _T:
    """Run `operation` so that `token` can cancel it.

    Raises:
        asyncio.CancelledError: The token was cancelled, before or meanwhile.
    """
    if token is None:
        return await operation
    if token.is_cancelled():
        operation.close()
        raise asyncio.CancelledError
    task = asyncio.ensure_future(operation)
    # A token keeps what is linked to it for as long as it lives: link something small, not the task and its
    # result.
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_gate(done: asyncio.Future[None]) -> None:
        if done.cancelled():
            task.cancel()

    gate.add_done_callback(on_gate)
    token.link_future(gate)
    try:
        return await task
    finally:
        if not gate.done():
            gate.set_result(None)
