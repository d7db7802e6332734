"""What the tests share: contents compared exactly, sidecars found and killed, scripts run."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autogen_core import Image
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType
from autogen_core.model_context import UnboundedChatCompletionContext
from PIL import Image as PILImage

from mnem_autogen import MnemosyneMemory, _registry

PATIENCE = 30.0
"""Seconds after which something that should have happened is taken not to happen. No test depends on less."""


def text(content: str) -> MemoryContent:
    return MemoryContent(content=content, mime_type=MemoryMimeType.TEXT)


def data(content: dict[str, Any]) -> MemoryContent:
    return MemoryContent(content=content, mime_type=MemoryMimeType.JSON)


def picture(colour: tuple[int, int, int] = (200, 30, 60)) -> Image:
    image = PILImage.new("RGB", (7, 5), colour)
    image.putpixel((3, 2), (1, 2, 3))
    return Image.from_pil(image)


def exact(content: MemoryContent) -> object:
    """A content as something whose `==` sees every difference: number kinds, key order, -0.0, pixels."""
    value: object = content.content
    if isinstance(value, Image):
        value = (value.image.mode, value.image.size, value.image.tobytes())
    mime_type = content.mime_type
    if not isinstance(mime_type, MemoryMimeType) and mime_type in {each.value for each in MemoryMimeType}:
        mime_type = MemoryMimeType(mime_type)  # What AutoGen knows comes back as its enum.
    return repr((type(content.content).__name__, value, mime_type, content.metadata))


async def contents(memory: MnemosyneMemory | ListMemory) -> list[object]:
    return [exact(each) for each in (await memory.query()).results]


async def context_text(memory: MnemosyneMemory | ListMemory) -> list[Any]:
    """The contents of the messages that the memory adds to an empty model context."""
    context = UnboundedChatCompletionContext()
    await memory.update_context(context)
    return [message.content for message in await context.get_messages()]


def sidecar_pids() -> list[int]:
    """The sidecars of this process that have not ended."""
    return [each.pid for each in _registry.connections() if each.pid is not None]


def requests_in_flight() -> int:
    return sum(each.in_flight for each in _registry.connections())


def end_sidecars() -> None:
    """End every sidecar that a test left, and wait until it is gone."""
    left = _registry.connections()
    for each in left:
        each.end()
    for each in left:
        assert each.join(PATIENCE)


def kill_sidecar() -> int:
    """Kill this process's only sidecar with -9, and wait until it is gone."""
    (pid,) = sidecar_pids()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: gone(pid), f"sidecar {pid} to be gone")
    return pid


def gone(pid: int) -> bool:
    """Whether no process has this id any more; a zombie is not gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def ended(pid: int) -> bool:
    """Whether the process has ended, be it reaped or (its parent is not ours) a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.parent.parent.joinpath("self").exists():
        return gone(pid)
    try:
        return stat.read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until(true: Callable[[], bool], what: str) -> None:
    """Look until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


def children(pid: int) -> list[int]:
    """The processes whose parent is `pid`, zombies too; none where there is no /proc to look in."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == str(pid):
            found.append(int(stat.parent.name))
    return found


def run_script(
    script: str,
    *arguments: object,
    python: str = sys.executable,
    flags: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run Python source in a process of its own, from a directory that is no checkout."""
    return subprocess.run(
        [python, *flags, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
        cwd=os.sep,
        timeout=4 * PATIENCE,
        check=False,
    )


def start_script(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start Python source in a process of its own, with a pipe for its output."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)], stdout=subprocess.PIPE, text=True, cwd=os.sep
    )


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
