"""A parent that dies leaves no orphan, and a forked child is a process of its own."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pytest

from mnem_autogen import MnemosyneMemory
from support import (
    PATIENCE,
    contents,
    ended,
    exact,
    read_line,
    run_script,
    sidecar_pids,
    start_script,
    text,
    wait_until,
)

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]

PARENT = """
import asyncio, os, signal, sys
from autogen_core.memory import MemoryContent
from mnem_autogen import MnemosyneMemory, _registry
memory = MnemosyneMemory("m", sys.argv[1])
asyncio.run(memory.add(MemoryContent(content="durable", mime_type="text/plain")))
worker = 0
if sys.argv[2] == "fork":
    worker = os.fork()
elif sys.argv[2] == "fork unseen":
    import ctypes
    worker = ctypes.CDLL(None).fork()  # without Python's hooks: the child keeps the pipe open
elif sys.argv[2] == "multiprocessing":
    import multiprocessing
    process = multiprocessing.get_context("fork").Process(target=signal.pause)
    process.start()
    worker = process.pid
if worker == 0 and sys.argv[2].startswith("fork"):
    signal.pause()
print(_registry.connections()[0].pid, worker, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("worker", ["none", "fork", "fork unseen", "multiprocessing"])
def test_a_parent_killed_by_9_takes_its_sidecar_along(store: Path, worker: str) -> None:
    parent = start_script(PARENT, store, worker)
    sidecar_pid, worker_pid = map(int, read_line(parent).split())
    try:
        assert not ended(sidecar_pid)
        parent.kill()
        parent.wait()
        wait_until(lambda: ended(sidecar_pid), "the sidecar to end with its parent")
        if worker_pid:
            assert not ended(worker_pid)
    finally:
        if worker_pid:
            os.kill(worker_pid, signal.SIGKILL)
        assert parent.stdout is not None
        parent.stdout.close()
    assert asyncio.run(contents(MnemosyneMemory("m", store))) == [exact(text("durable"))]


FORKING = """
import asyncio, os, sys
from autogen_core.memory import MemoryContent
from mnem_autogen import MnemosyneMemory, _registry
memory = MnemosyneMemory("m", sys.argv[1])
def add(what):
    asyncio.run(memory.add(MemoryContent(content=what, mime_type="text/plain")))
    return _registry.connections()[0].pid
mine = add("parent before")
child = os.fork()
if child == 0:
    assert _registry.connections() == []
    own = add("child")
    assert own != mine
    assert len(asyncio.run(memory.query()).results) >= 2
    if sys.argv[2] == "close":
        asyncio.run(memory.close())
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert add("parent after") == mine, "the child's end left the parent's sidecar alone"
contents = [each.content for each in asyncio.run(memory.query()).results]
assert contents == ["parent before", "child", "parent after"], contents
"""


@pytest.mark.parametrize("closing", ["close", "leave"])
def test_a_forked_child_has_a_sidecar_of_its_own(store: Path, closing: str) -> None:
    done = run_script(
        FORKING, store, closing, flags=("-X", "dev", "-W", "error", "-W", "ignore::DeprecationWarning")
    )
    assert (done.returncode, done.stderr) == (0, "")


def add_in_child(memory: MnemosyneMemory, what: str) -> None:
    async def main() -> None:
        await memory.add(text(what))
        assert exact(text(what)) in await contents(memory)

    asyncio.run(main())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing_share_the_memory(store: Path, method: str) -> None:
    memory = MnemosyneMemory("m", store)
    asyncio.run(memory.add(text("parent")))
    mine = sidecar_pids()
    fork, spawn = multiprocessing.get_context("fork").Process, multiprocessing.get_context("spawn").Process
    process = fork if method == "fork" else spawn
    workers = [process(target=add_in_child, args=(memory, f"worker {number}")) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
        assert worker.exitcode == 0
        worker.close()
    assert sidecar_pids() == mine
    items = [str(item.content) for item in asyncio.run(memory.items())]
    assert sorted(items) == ["parent", "worker 0", "worker 1", "worker 2"]


def test_a_fork_while_a_sidecar_is_being_started_is_safe(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("m", store)
        for number in range(10):
            starting = asyncio.create_task(memory.add(text(str(number))))
            await asyncio.sleep(0.002 * number)
            child = os.fork()
            if child == 0:
                os.execv(sys.executable, [sys.executable, "-c", ""])
            await starting
            _, status = os.waitpid(child, 0)  # noqa: ASYNC222
            assert status == 0
            await memory.close()
        assert len(await contents(memory)) == 10

    asyncio.run(main())


def test_ctrl_c_in_a_terminal_does_not_take_the_sidecar_first(store: Path) -> None:
    asyncio.run(MnemosyneMemory("m", store).add(text("a")))
    (pid,) = sidecar_pids()
    assert os.getpgid(pid) != os.getpgid(0)
    assert os.getsid(pid) != os.getsid(0)
