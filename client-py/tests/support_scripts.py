"""What a scripted server does with a connection, mostly something that no sidecar would do."""

from __future__ import annotations

import asyncio
import socket

import pytest

from mnem_autogen import MnemError, MnemosyneMemory
from support_server import FakeServer, Peer

SECRET = "mnem_a-secret-that-nobody-may-see"
LONG = 60.0
"""A bound that no test waits for."""


def at(server: FakeServer, timeout: float = LONG, token: str | None = None) -> MnemosyneMemory:
    return MnemosyneMemory(endpoint=f"tcp://127.0.0.1:{server.port}", connect_timeout=timeout, token=token)


def failing(memory: MnemosyneMemory) -> MnemError:
    with pytest.raises(MnemError) as caught:
        asyncio.run(memory.query())
    return caught.value


def close_at_once(_peer: Peer) -> None:
    pass


def close_after_initialize(peer: Peer) -> None:
    peer.read()


def half_an_answer(peer: Peer) -> None:
    peer.read()
    peer.sock.sendall(b'Content-Length: 100\r\n\r\n{"jsonrpc"')


def reset(peer: Peer) -> None:
    peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def busy(peer: Peer) -> None:
    peer.refuse("busy", "2 connections are open already; try again when one has closed.")


def shutting_down(peer: Peer) -> None:
    request = peer.read()
    peer.refuse("shutting_down", "The server is being stopped.", (request or {}).get("id"))


def too_slow(peer: Peer) -> None:
    peer.refuse("not_initialized", "Nothing was initialized within 10 ms.")


def unauthorized(peer: Peer) -> None:
    request = peer.read()
    peer.refuse("unauthorized", f"Not known: {(request or {})['params'].get('token')}", 0)


def silent(peer: Peer) -> None:
    while peer.read() is not None:
        pass


def repeated(peer: Peer) -> None:
    while data := peer.sock.recv(4096):
        peer.sock.sendall(data)


def web(peer: Peer) -> None:
    peer.sock.recv(1)
    peer.sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def a_tls_alert(peer: Peer) -> None:
    peer.sock.recv(1)
    peer.sock.sendall(b"\x15\x03\x01\x00\x02\x02\x46")


def garbage(peer: Peer) -> None:
    peer.sock.sendall(b"220 mail.example.org ESMTP\r\n")


def no_limits(peer: Peer) -> None:
    peer.answer(peer.read(), {"protocol": 1})
