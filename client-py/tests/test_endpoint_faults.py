"""Whatever answers at an endpoint, a call ends within its bound, with an answer or one error that helps."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mnem_autogen import MnemosyneMemory, ProtocolError, SidecarError, UnauthorizedError, _registry
from support import PATIENCE, end_sidecars, text, wait_until
from support_scripts import (
    LONG,
    SECRET,
    a_tls_alert,
    at,
    busy,
    close_after_initialize,
    close_at_once,
    failing,
    garbage,
    half_an_answer,
    no_limits,
    repeated,
    reset,
    shutting_down,
    silent,
    too_slow,
    unauthorized,
    web,
)
from support_server import (
    EMPTY,
    FakeServer,
    Peer,
    Script,
    fake_server,
    free_port,
    serve_empty,
)


@pytest.fixture(autouse=True)
def _no_connections() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    end_sidecars()


@pytest.mark.parametrize(
    "script",
    [close_at_once, close_after_initialize, half_an_answer, reset, busy, shutting_down, too_slow],
    ids=lambda script: script.__name__,
)
def test_a_server_that_has_no_session_for_us_yet_is_asked_again(script: Script) -> None:
    with fake_server(script, script, serve_empty) as server:
        assert asyncio.run(at(server).query()).results == []
        assert server.count == 3


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (close_at_once, "connection before it answered"),
        (busy, "2 connections are open already"),
        (shutting_down, "The server is being stopped"),
        (silent, "took the connection, and"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_past_the_bound_there_is_one_error_with_the_last_reason(script: Script, reason: str) -> None:
    with fake_server(script) as server:
        error = failing(at(server, 0.4))
    assert type(error) is SidecarError
    for part in (f"tcp://127.0.0.1:{server.port} ", "within 0.4 s", reason, "mnem-sidecar serve", "tls://"):
        assert part in str(error)


def test_where_nobody_listens_the_error_names_the_endpoint_the_bound_and_the_fix(tmp_path: Path) -> None:
    dead = tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(dead))
    port = free_port()
    for endpoint, reason in (
        (f"unix://{tmp_path}/no.sock", "no socket there"),
        (f"unix://{dead}", "nobody listens"),
        (f"tcp://127.0.0.1:{port}", "does not listen"),
        (f"tls://localhost:{port}", "does not listen"),
        ("tcp://nowhere.invalid:7777", "can't be resolved"),
    ):
        error = failing(MnemosyneMemory(endpoint=endpoint, connect_timeout=0.3))
        assert type(error) is SidecarError
        for part in (endpoint, "within 0.3 s (connect_timeout)", reason, "mnem-sidecar serve"):
            assert part in str(error)
        assert "\n" not in str(error)


def test_a_refused_token_is_an_error_at_once_and_is_not_repeated() -> None:
    with fake_server(unauthorized) as server:
        error = failing(at(server, token=SECRET))
        assert type(error) is UnauthorizedError
        assert server.count == 1
    assert SECRET not in str(error) + repr(error) + repr(error.data)


def test_another_protocol_version_is_an_error_at_once() -> None:
    def other(peer: Peer) -> None:
        peer.read()
        peer.refuse("unsupported_protocol", "This server speaks 2.", 0)

    with fake_server(other) as server:
        error = failing(at(server))
        assert (type(error), server.count) == (ProtocolError, 1)
        assert "speaks 2" in str(error)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (web, "a web server answers at tcp://"),
        (a_tls_alert, "use tls://127.0.0.1:"),
        (garbage, "220 mail"),
        (repeated, "no mnem-sidecar (a request"),
        (no_limits, "no mnem-sidecar (an answer"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_no_sidecar_is_told_at_once(script: Script, said: str) -> None:
    with fake_server(script) as server:
        error = failing(at(server, token=SECRET))
        assert server.count == 1
    assert type(error) is SidecarError
    assert said in str(error)
    assert SECRET not in str(error)


def test_a_sidecar_that_loses_its_step_is_a_protocol_error_not_a_hang() -> None:
    def lost(peer: Peer) -> None:
        peer.initialize()
        peer.read()
        peer.sock.sendall(b"what?\r\n\r\n")
        peer.read()

    with fake_server(lost, serve_empty) as server:
        memory = at(server)
        error = failing(memory)
        assert type(error) is ProtocolError
        assert "something else than frames" in str(error)
        assert asyncio.run(memory.query()).results == [], "the next call has a connection of its own"


def test_a_server_that_always_hangs_up_on_a_request_is_given_up() -> None:
    def hang_up(peer: Peer) -> None:
        peer.initialize()
        peer.read()

    with fake_server(hang_up) as server:
        error = failing(at(server))
        assert server.count == 4
    assert type(error) is SidecarError
    assert str(error) == (
        f"the sidecar at tcp://127.0.0.1:{server.port} was lost 4 times over one request; "
        "the last one closed the connection"
    )


def test_a_lost_write_is_sent_again_with_its_key() -> None:
    keys: list[str] = []

    def lose(peer: Peer) -> None:
        peer.initialize()
        keys.append((peer.read() or {})["params"]["idempotency_key"])

    def take(peer: Peer) -> None:
        peer.initialize()
        request = peer.read() or {}
        keys.append(request["params"]["idempotency_key"])
        peer.answer(request, {"commit": "c", "ids": ["i"]})
        peer.read()

    with fake_server(lose, lose, take) as server:
        asyncio.run(at(server).add(text("once")))
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_a_connection_that_the_server_closes_idle_is_replaced_by_the_next_call() -> None:
    def one(peer: Peer) -> None:
        peer.initialize()
        peer.answer(peer.read(), EMPTY)

    with fake_server(one) as server:
        memory = at(server)
        for number in range(1, 4):
            assert asyncio.run(memory.query()).results == []
            wait_until(lambda: _registry.connections() == [], "the closed connection to be let go")
            assert server.count == number


def test_the_token_is_read_anew_for_each_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def one(peer: Peer) -> None:
        seen.append(peer.initialize().get("token"))
        peer.answer(peer.read(), EMPTY)

    file = tmp_path / "token"
    file.write_text("first\n")
    monkeypatch.setenv("MNEM_TOKEN_FILE", str(file))
    with fake_server(one) as server:
        memory = at(server)
        asyncio.run(memory.query())
        wait_until(lambda: _registry.connections() == [], "the closed connection to be let go")
        file.write_text("second\n")
        asyncio.run(memory.query())
    assert seen == ["first", "second"]


def test_closing_does_not_wait_for_a_server_that_does_not_answer() -> None:
    asked = threading.Event()

    def silent_once_asked(peer: Peer) -> None:
        peer.read()
        asked.set()
        silent(peer)

    async def main(server: FakeServer) -> None:
        memory = at(server)
        call = asyncio.create_task(memory.query())
        await asyncio.to_thread(asked.wait, PATIENCE)
        call.cancel()
        await memory.close()
        assert _registry.connections() == []
        assert not call.done() or call.cancelled()

    with fake_server(silent_once_asked) as server:
        asyncio.run(main(server))


def test_closing_does_not_wait_for_a_host_name_to_be_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, gate = threading.Event(), threading.Event()
    look_up = socket.getaddrinfo

    def slow(host: str, port: int, *, type: int, flags: int) -> object:  # noqa: A002
        if flags == 0:
            asked.set()
            assert gate.wait(PATIENCE)
        return look_up(host, port, type=type, flags=flags)

    async def main() -> None:
        memory = MnemosyneMemory(endpoint="tcp://slow.invalid:7777", connect_timeout=LONG)
        call = asyncio.create_task(memory.query())
        await asyncio.to_thread(asked.wait, PATIENCE)
        call.cancel()
        await memory.close()
        assert _registry.connections() == []
        assert not gate.is_set()
        gate.set()

    monkeypatch.setattr("mnem_autogen._dial.socket.getaddrinfo", slow)
    asyncio.run(main())


def test_closing_while_a_call_waits_for_a_server_does_not_lose_the_call() -> None:
    async def main() -> None:
        port = free_port()
        memory = MnemosyneMemory(endpoint=f"tcp://127.0.0.1:{port}", connect_timeout=LONG)
        call = asyncio.create_task(memory.query())
        await asyncio.sleep(0)
        await memory.close()
        listener = socket.create_server(("127.0.0.1", port))
        server = FakeServer(listener, [serve_empty], None)
        try:
            assert (await call).results == []
        finally:
            server.stop()

    asyncio.run(main())


def test_a_call_that_joins_a_wait_late_has_its_own_bound() -> None:
    gate = threading.Event()

    def later(peer: Peer) -> None:
        assert gate.wait(PATIENCE)
        serve_empty(peer)

    async def main(server: FakeServer) -> None:
        memory = at(server, 1.0)
        first = asyncio.create_task(memory.query())
        await asyncio.sleep(0.5)
        second = asyncio.create_task(memory.query())
        with pytest.raises(SidecarError):
            await first
        gate.set()
        assert (await second).results == []

    with fake_server(later) as server:
        asyncio.run(main(server))


def test_waiting_blocks_no_event_loop() -> None:
    async def main() -> None:
        memory = MnemosyneMemory(endpoint="tcp://nowhere.invalid:7777", connect_timeout=0.5)
        call = asyncio.create_task(memory.query())
        turns = 0
        while not call.done():
            await asyncio.sleep(0.001)
            turns += 1
        with pytest.raises(SidecarError):
            await call
        assert turns > 4

    asyncio.run(main())


def forbidden(*_: object) -> int:
    return errno.EACCES


def test_a_socket_that_this_user_may_not_use_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mnem.sock"
    with fake_server(serve_empty, path=path):
        path.chmod(0)
        if os.geteuid() == 0:  # Who may connect to any socket.
            monkeypatch.setattr("mnem_autogen._socket.SocketTransport.connect", forbidden)
        error = failing(MnemosyneMemory(endpoint=f"unix://{path}", connect_timeout=LONG))
    assert type(error) is SidecarError
    assert "--socket-mode 0660" in str(error)
