"""An endpoint used by several processes: workers, forked children, scripts that end without closing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mnem_autogen import MnemosyneMemory
from support import PATIENCE, end_sidecars, gone, run_script, wait_until
from support_server import Peer, Server, fake_server, make_certificates, real_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with real_server(tmp_path) as each:
        yield each
        end_sidecars()


ADD_MANY = """
import asyncio, sys
from autogen_core.memory import MemoryContent
from mnem_autogen import MnemosyneMemory
async def main():
    memory = MnemosyneMemory("m", endpoint=sys.argv[1])
    contents = [MemoryContent(content=f"{sys.argv[2]} {n}", mime_type="text/plain") for n in range(100)]
    await asyncio.gather(*map(memory.add, contents))
asyncio.run(main())
"""


def test_two_processes_share_a_memory_and_no_update_is_lost(server: Server) -> None:
    server.start()
    workers = [subprocess.Popen([sys.executable, "-c", ADD_MANY, server.unix, who]) for who in "ab"]
    assert [worker.wait(4 * PATIENCE) for worker in workers] == [0, 0]
    items = [str(item.content) for item in asyncio.run(MnemosyneMemory("m", endpoint=server.unix).items())]
    assert sorted(items) == sorted(f"{who} {number}" for who in "ab" for number in range(100))


FORKING = """
import asyncio, os, sys
from autogen_core.memory import MemoryContent
from mnem_autogen import MnemosyneMemory, _registry
memory = MnemosyneMemory("m", endpoint=sys.argv[1])
def add(what):
    asyncio.run(memory.add(MemoryContent(content=what, mime_type="text/plain")))
add("parent before")
mine = _registry.connections()[0]
child = os.fork()
if child == 0:
    assert _registry.connections() == []
    if sys.argv[2] != "unused":
        add("child")
    if sys.argv[2] == "close":
        asyncio.run(memory.close())
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
add("parent after")
assert _registry.connections() == [mine], "the child's end left the parent's connection alone"
print(len(asyncio.run(memory.query()).results))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(("child", "count"), [("close", 3), ("leave", 3), ("unused", 2)])
@pytest.mark.parametrize("secured", [False, True], ids=["unix", "tls"])
def test_a_forked_child_has_a_connection_of_its_own(
    tmp_path: Path, child: str, count: int, secured: bool
) -> None:
    options: list[object] = []
    environment: dict[str, str] = {}
    if secured:
        made = make_certificates(tmp_path)
        options = ["--tls-cert", made.cert, "--tls-key", made.key]
        environment = {"MNEM_TLS_CA": str(made.ca)}
    with real_server(tmp_path, *options) as server:
        if secured:
            server.start_tls()
        else:
            server.start()
        endpoint = server.tls if secured else server.unix
        flags = ("-X", "dev", "-W", "error", "-W", "ignore::DeprecationWarning")
        done = run_script(FORKING, endpoint, child, flags=flags, environment=environment)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{count}\n")


LEFT_OPEN = """
import asyncio, contextlib, sys, threading
from autogen_core.memory import MemoryContent
from mnem_autogen import MnemosyneMemory, SidecarError
memory = MnemosyneMemory("m", endpoint=sys.argv[1])
if sys.argv[2] == "used":
    asyncio.run(memory.add(MemoryContent(content="durable", mime_type="text/plain")))
else:
    waiting = threading.Event()
    def wait():
        async def main():
            call = asyncio.ensure_future(memory.query())
            await asyncio.sleep(0)
            waiting.set()
            with contextlib.suppress(SidecarError):  # As the interpreter ends, a wait for a server does.
                await call
        asyncio.run(main())
    threading.Thread(target=wait, daemon=True).start()
    waiting.wait()
"""


@pytest.mark.parametrize("state", ["used", "waiting"])
def test_a_script_that_never_closes_ends_silently(server: Server, state: str) -> None:
    if state == "used":
        server.start()
    done = run_script(LEFT_OPEN, server.unix, state, flags=("-X", "dev", "-W", "error"))
    assert (done.returncode, done.stderr) == (0, "")


CHILD_OF_A_KILLED_PARENT = """
import asyncio, os, signal, sys
from autogen_core.memory import MemoryContent
from mnem_autogen import MnemosyneMemory
memory = MnemosyneMemory("m", endpoint=sys.argv[1])
asyncio.run(memory.add(MemoryContent(content="durable", mime_type="text/plain")))
child = os.fork()
if child == 0:
    signal.pause()
print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_does_not_keep_a_dead_parents_connection_open(server: Server) -> None:
    server.start()
    done = subprocess.Popen(
        [sys.executable, "-c", CHILD_OF_A_KILLED_PARENT, server.unix], stdout=subprocess.PIPE, text=True
    )
    assert done.stdout is not None
    child = int(done.stdout.readline())
    try:
        done.wait(PATIENCE)
        assert not gone(child)
        wait_until(lambda: "connection closed" in server.log, "the server to hear of it")
    finally:
        os.kill(child, 9)
        done.stdout.close()


FORKED_WHILE_CONNECTING = """
import asyncio, contextlib, os, socket, sys, threading, time
from mnem_autogen import MnemosyneMemory, SidecarError, _registry
port = int(sys.argv[2])
memory = MnemosyneMemory(endpoint=f"{sys.argv[1]}://127.0.0.1:{port}", connect_timeout=60)
def ask():
    with contextlib.suppress(SidecarError):  # As the interpreter ends, a wait for a server does.
        asyncio.run(memory.query())
threading.Thread(target=ask, daemon=True).start()
def connected():
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            each = socket.socket(fileno=int(name))
        except OSError:
            continue
        try:
            found += each.getpeername() == ("127.0.0.1", port)
        except OSError:
            pass
        each.detach()
    return found
while connected() == 0:
    time.sleep(0.01)
child = os.fork()
if child == 0:
    print(connected(), _registry.connections(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(connected() > 0, len(_registry.connections()))
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no fork, or no usual numbers of files, here")
@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_a_child_forked_while_connecting_keeps_nothing_of_it(scheme: str) -> None:
    def silent(peer: Peer) -> None:
        while peer.sock.recv(4096):
            pass

    with fake_server(silent) as server:
        flags = ("-W", "ignore::DeprecationWarning")
        done = run_script(FORKED_WHILE_CONNECTING, scheme, server.port, flags=flags)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "0 []\nTrue 1\n")
