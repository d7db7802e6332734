"""TLS to an endpoint: who is trusted, what is told where it fails, and both directions at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mnem_autogen import MnemosyneMemory, SidecarError
from support import end_sidecars, text
from support_scripts import LONG, busy, close_at_once, failing, garbage, web
from support_server import FakeServer, Peer, fake_server, make_certificates, serve_empty


@pytest.fixture(autouse=True)
def _no_connections() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    end_sidecars()


def test_a_server_without_tls_is_told_at_once_also_when_it_is_a_sidecar() -> None:
    def sidecar(peer: Peer) -> None:
        peer.refuse("", "Bad header.")
        peer.sock.recv(4096)

    for script, said in ((sidecar, "use tcp://"), (web, "a web server"), (garbage, "speaks no TLS")):
        with fake_server(script) as server:
            error = failing(MnemosyneMemory(endpoint=f"tls://127.0.0.1:{server.port}", connect_timeout=LONG))
            assert type(error) is SidecarError
            assert said in str(error)


def test_a_tls_server_that_has_no_room_says_so_without_tls_and_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_certificates(tmp_path)
    monkeypatch.setenv("MNEM_TLS_CA", str(made.ca))

    def then_tls(peer: Peer) -> None:
        inside = Peer(made.server_context().wrap_socket(peer.sock, server_side=True))
        serve_empty(inside)
        inside.close()

    def no_room(peer: Peer) -> None:
        busy(peer)
        peer.sock.recv(4096)

    with fake_server(no_room, close_at_once, then_tls) as server:
        memory = MnemosyneMemory(endpoint=f"tls://localhost:{server.port}", connect_timeout=LONG)
        assert asyncio.run(memory.query()).results == []
        assert server.count == 3
        asyncio.run(memory.close())


def test_a_certificate_that_can_not_be_verified_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_certificates(tmp_path)
    with fake_server(serve_empty, tls=made.server_context()) as server:
        error = failing(MnemosyneMemory(endpoint=f"tls://localhost:{server.port}", connect_timeout=LONG))
        assert type(error) is SidecarError
        assert "MNEM_TLS_CA" in str(error)
        monkeypatch.setenv("MNEM_TLS_CA", str(made.ca))
        error = failing(MnemosyneMemory(endpoint=f"tls://127.0.0.2:{server.port}", connect_timeout=0.3))
        monkeypatch.setenv("MNEM_TLS_CA", str(made.key))
        error = failing(MnemosyneMemory(endpoint=f"tls://localhost:{server.port}", connect_timeout=LONG))
        assert "MNEM_TLS_CA names" in str(error)
        monkeypatch.setenv("MNEM_TLS_CA", str(made.ca))
        monkeypatch.setenv("MNEM_TLS_KEY", str(made.key))
        error = failing(MnemosyneMemory(endpoint=f"tls://localhost:{server.port}", connect_timeout=LONG))
        assert "set both" in str(error)
        monkeypatch.setenv("MNEM_TLS_CERT", str(tmp_path / "nothing.pem"))
        error = failing(MnemosyneMemory(endpoint=f"tls://localhost:{server.port}", connect_timeout=LONG))
        assert "nothing.pem" in str(error)


def test_a_certificate_for_another_host_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_certificates(tmp_path)
    monkeypatch.setenv("MNEM_TLS_CA", str(made.ca))
    with fake_server(serve_empty, tls=made.server_context()) as server:
        # 127.0.0.1 in the spelling of IPv6: the same socket, and no name in the certificate.
        listener = server.port
        error = failing(MnemosyneMemory(endpoint=f"tls://127.1:{listener}", connect_timeout=LONG))
    assert type(error) is SidecarError
    assert "could not be verified" in str(error)
    assert "for the host in the endpoint" in str(error)


def test_half_a_tls_stream_is_a_lost_connection_not_an_end_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_certificates(tmp_path)
    monkeypatch.setenv("MNEM_TLS_CA", str(made.ca))

    def cut(peer: Peer) -> None:
        peer.initialize()
        peer.read()
        peer.sock.sendall(b"Content-Length: 999\r\n\r\n{")

    with fake_server(cut, serve_empty, tls=made.server_context()) as server:
        memory = MnemosyneMemory(endpoint=f"tls://localhost:{server.port}", connect_timeout=LONG)
        assert asyncio.run(memory.query()).results == []
        assert server.count == 2


@pytest.mark.parametrize("secured", [False, True], ids=["tcp", "tls"])
def test_large_frames_both_ways_at_once_block_neither_the_loop_nor_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secured: bool
) -> None:
    made = make_certificates(tmp_path) if secured else None
    if made is not None:
        monkeypatch.setenv("MNEM_TLS_CA", str(made.ca))

    def at_length(peer: Peer) -> None:
        peer.initialize()
        while (request := peer.read()) is not None:
            peer.answer(request, {"commit": "c", "ids": [], "pad": "p" * 4_000_000})

    async def main(server: FakeServer) -> None:
        scheme = "tls" if secured else "tcp"
        memory = MnemosyneMemory(endpoint=f"{scheme}://localhost:{server.port}", connect_timeout=LONG)
        await memory.add(text("small"))
        adds = [asyncio.create_task(memory.add(text("x" * (8 * 2**20 - 100)))) for _ in range(4)]
        turns = 0
        while not all(each.done() for each in adds):
            await asyncio.sleep(0.001)
            turns += 1
        await asyncio.gather(*adds)
        assert turns > 4, "the loop went on meanwhile"
        # What is under way when the connection is closed is still answered, after our side has ended.
        adds = [asyncio.create_task(memory.add(text("x" * 2**20))) for _ in range(4)]
        await asyncio.sleep(0)
        await memory.close()
        await asyncio.gather(*adds)
        assert server.count == 1

    with fake_server(at_length, tls=None if made is None else made.server_context()) as server:
        asyncio.run(main(server))
