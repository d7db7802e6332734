"""The real server behind an endpoint: waited for, restarted, killed, and asked with the right token."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mnem_autogen import MnemosyneMemory, SidecarError, UnauthorizedError, _registry
from support import (
    PATIENCE,
    contents,
    end_sidecars,
    exact,
    requests_in_flight,
    text,
    wait_until,
)
from support_server import Server, make_certificates, new_token, real_server, revoke_token


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with real_server(tmp_path) as each:
        yield each
        end_sidecars()


def at(endpoint: str, token: str | None = None, name: str = "m") -> MnemosyneMemory:
    return MnemosyneMemory(name, endpoint=endpoint, token=token, connect_timeout=PATIENCE)


async def use(memory: MnemosyneMemory) -> None:
    await memory.add(text("kept"))
    assert await contents(memory) == [exact(text("kept"))]
    assert [commit.author for commit in await memory.log()] == ["agent"]
    await memory.close()
    assert _registry.connections() == []
    assert len(await contents(memory)) == 1, "it opens itself again"


def test_a_memory_is_kept_over_a_unix_socket(server: Server) -> None:
    server.start()
    asyncio.run(use(at(server.unix)))


def test_a_memory_is_kept_over_tcp_with_a_token(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    token = new_token(file, "agents")
    with real_server(tmp_path, "--token-file", file) as server:
        server.start_tcp()
        asyncio.run(use(at(server.tcp, token)))
        end_sidecars()


def test_a_memory_is_kept_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_certificates(tmp_path)
    monkeypatch.setenv("MNEM_TLS_CA", str(made.ca))
    with real_server(tmp_path, "--tls-cert", made.cert, "--tls-key", made.key) as server:
        server.start_tls()
        asyncio.run(use(at(server.tls)))
        end_sidecars()


def test_a_server_may_ask_for_a_client_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_certificates(tmp_path)
    monkeypatch.setenv("MNEM_TLS_CA", str(made.ca))
    options = ["--tls-cert", made.cert, "--tls-key", made.key, "--tls-ca", made.ca]
    with real_server(tmp_path, *options) as server:
        server.start_tls()
        monkeypatch.setenv("MNEM_TLS_CERT", str(made.cert))
        monkeypatch.setenv("MNEM_TLS_KEY", str(made.key))
        asyncio.run(use(at(server.tls)))
        end_sidecars()
        monkeypatch.delenv("MNEM_TLS_CERT")
        monkeypatch.delenv("MNEM_TLS_KEY")
        with pytest.raises(SidecarError, match="MNEM_TLS_CERT and MNEM_TLS_KEY"):
            asyncio.run(MnemosyneMemory(endpoint=server.tls, connect_timeout=1).query())


def test_without_tls_a_tls_port_is_an_error_that_names_the_cause(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    with real_server(tmp_path, "--tls-cert", made.cert, "--tls-key", made.key) as server:
        server.start_tls()
        with pytest.raises(SidecarError, match=f"tls://127.0.0.1:{server.port}"):
            asyncio.run(MnemosyneMemory(endpoint=server.tcp, connect_timeout=1).query())
        server.stop()
        server.start_tcp()
        with pytest.raises(SidecarError, match=f"use tcp://localhost:{server.port}"):
            asyncio.run(at(server.tls).query())


def test_an_add_waits_for_a_server_that_is_started_after_it(server: Server) -> None:
    async def main() -> None:
        memory = at(server.unix)
        adds = [asyncio.create_task(memory.add(text(str(number)))) for number in range(10)]
        await asyncio.sleep(0.2)
        assert not any(each.done() for each in adds)
        server.start()
        await asyncio.gather(*adds)
        assert len(await contents(memory)) == 10

    asyncio.run(main())


def test_a_wait_in_vain_is_one_error_for_each_call(server: Server) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(endpoint=server.unix, connect_timeout=1)
        outcomes = await asyncio.gather(memory.add(text("x")), memory.query(), return_exceptions=True)
        for outcome in outcomes:
            assert type(outcome) is SidecarError
            for part in (server.unix, "within 1 s (connect_timeout)", "mnem-sidecar serve --listen unix:"):
                assert part in str(outcome)
        server.start()
        assert await contents(at(server.unix)) == []

    asyncio.run(main())


@pytest.mark.parametrize(
    ("end", "secured"), [("kill", False), ("stop", False), ("kill", True), ("stop", True)]
)
def test_a_server_that_is_ended_and_started_under_load_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, secured: bool
) -> None:
    options: list[object] = []
    if secured:
        made = make_certificates(tmp_path)
        monkeypatch.setenv("MNEM_TLS_CA", str(made.ca))
        options = ["--tls-cert", made.cert, "--tls-key", made.key]

    async def main(server: Server) -> None:
        start = server.start_tls if secured else server.start
        memory = at(server.tls if secured else server.unix)
        start()
        await memory.add(text("first"))
        for round_ in range(3):
            adds = [asyncio.create_task(memory.add(text(f"{round_} {number}"))) for number in range(200)]
            # The first round dies before all is sent, the later ones after some answers have come.
            await asyncio.wait(adds[: 50 * round_ + 1], timeout=0 if round_ == 0 else None)
            getattr(server, end)()
            start()
            await asyncio.gather(*adds)
        items = [str(item.content) for item in await memory.items()]
        assert sorted(items) == sorted(["first", *(f"{each} {n}" for each in range(3) for n in range(200))])
        assert len(await memory.log()) == 601
        assert requests_in_flight() == 0

    with real_server(tmp_path, *options) as server:
        asyncio.run(main(server))
        end_sidecars()


@pytest.mark.parametrize("secured", [False, True], ids=["tcp", "tls"])
def test_a_server_with_no_room_is_asked_again_until_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secured: bool
) -> None:
    made = make_certificates(tmp_path)
    monkeypatch.setenv("MNEM_TLS_CA", str(made.ca))
    options = ["--max-connections", 1, *(["--tls-cert", made.cert, "--tls-key", made.key] if secured else [])]

    async def main(server: Server) -> None:
        endpoint = server.tls if secured else server.tcp
        first = at(endpoint)
        await first.add(text("first"))
        # Another timeout is another connection.
        # Over TLS the server's word for it may be lost to the end of the handshake.
        said = "" if secured else ".*1 connections are open already"
        with pytest.raises(SidecarError, match=f"within 1 s{said}"):
            await MnemosyneMemory("m", endpoint=endpoint, connect_timeout=1).query()
        second = MnemosyneMemory("m", endpoint=endpoint, connect_timeout=PATIENCE + 1)
        call = asyncio.create_task(contents(second))
        await asyncio.sleep(0.2)
        assert not call.done()
        await first.close()
        assert await call == [exact(text("first"))]

    with real_server(tmp_path, *options) as server:
        if secured:
            server.start_tls()
        else:
            server.start_tcp()
        asyncio.run(main(server))
        end_sidecars()


def test_an_idle_memory_finds_a_server_that_was_restarted(server: Server) -> None:
    server.start()
    memory = at(server.unix)
    asyncio.run(memory.add(text("before")))
    server.stop()
    wait_until(lambda: _registry.connections() == [], "the lost connection to be let go")
    server.start()
    assert asyncio.run(contents(memory)) == [exact(text("before"))]


def test_closing_under_calls_in_flight_loses_none(server: Server) -> None:
    async def main() -> None:
        memory = at(server.unix)
        server.start()
        await memory.add(text("first"))
        adds = [asyncio.create_task(memory.add(text(str(number)))) for number in range(100)]
        await asyncio.sleep(0)
        await memory.close()
        await asyncio.gather(*adds)
        assert len(await contents(memory)) == 101

    asyncio.run(main())


def test_closing_leaves_the_server_to_others(server: Server) -> None:
    async def main() -> None:
        server.start()
        memories = [at(server.unix, name=name) for name in "ab"]
        for each in memories:
            await each.add(text("x"))
        assert len(_registry.connections()) == 1, "memories of one endpoint share a connection"
        await memories[0].close()
        assert len(_registry.connections()) == 1
        await memories[1].close()
        assert _registry.connections() == []
        assert len(await contents(memories[0])) == 1

    asyncio.run(main())


def test_thirty_rounds_of_open_and_close_leave_nothing_behind(server: Server) -> None:
    def held() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def round_() -> None:
        memory = at(server.unix)
        await memory.add(text("a"))
        await memory.close()

    if not Path("/proc/self/fd").exists():
        pytest.skip("no /proc/self/fd here to count open files in")
    server.start()
    asyncio.run(round_())
    before = held()
    for _ in range(30):
        asyncio.run(round_())
    assert held() == before


def test_a_wrong_missing_or_withdrawn_token_is_unauthorized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tokens.json"
    good = new_token(file, "good")
    with real_server(tmp_path, "--token-file", file) as server:
        server.start()
        for wrong in (None, "mnem_wrong"):
            with pytest.raises(UnauthorizedError) as caught:
                asyncio.run(at(server.unix, wrong).query())
            assert "mnem_wrong" not in str(caught.value)
        monkeypatch.setenv("MNEM_TOKEN", good)
        memory = at(server.unix)
        asyncio.run(memory.add(text("x")))
        revoke_token(file, "good")
        wait_until(lambda: _registry.connections() == [], "the server to close the connection")
        with pytest.raises(UnauthorizedError):
            asyncio.run(memory.query())


def test_a_token_file_may_be_changed_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, file = tmp_path / "tokens.json", tmp_path / "token"
    file.write_text(new_token(tokens, "old") + "\n")
    monkeypatch.setenv("MNEM_TOKEN_FILE", str(file))
    with real_server(tmp_path, "--token-file", tokens) as server:
        server.start()
        memory = at(server.unix)
        asyncio.run(memory.add(text("a")))
        file.write_text(new_token(tokens, "new") + "\n")
        revoke_token(tokens, "old")
        wait_until(lambda: _registry.connections() == [], "the server to close the connection")
        asyncio.run(memory.add(text("b")))
        assert len(asyncio.run(contents(memory))) == 2
        end_sidecars()


def test_a_memory_that_the_token_is_not_for_is_unauthorized_and_the_connection_stays(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    token = new_token(file, "reader", "--memory", "public*", "--verb", "read")
    with real_server(tmp_path, "--token-file", file) as server:
        server.start()
        with pytest.raises(UnauthorizedError):
            asyncio.run(at(server.unix, token, "private").query())
        with pytest.raises(UnauthorizedError):
            asyncio.run(at(server.unix, token, "public notes").add(text("x")))
        assert asyncio.run(contents(at(server.unix, token, "public notes"))) == []
        end_sidecars()


def test_two_tokens_in_one_process_never_mix(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    one = new_token(file, "one", *("--memory", "m", "--verb", "read", "--verb", "write", "--author", "ann"))
    two = new_token(file, "two", *("--memory", "other", "--verb", "read", "--verb", "write"))
    with real_server(tmp_path, "--token-file", file) as server:
        server.start()
        memory = at(server.unix, one)
        asyncio.run(memory.add(text("secret")))
        assert asyncio.run(contents(memory)) == [exact(text("secret"))]
        assert [commit.author for commit in asyncio.run(memory.log())] == ["ann"]
        with pytest.raises(UnauthorizedError):
            asyncio.run(at(server.unix, two).query())
        end_sidecars()


def test_a_dumped_memory_loads_elsewhere_without_its_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tokens.json"
    token = new_token(file, "agents")
    with real_server(tmp_path, "--token-file", file) as server:
        server.start()
        memory = at(server.unix, token)
        asyncio.run(memory.add(text("kept")))
        dumped = memory.dump_component()
        assert token not in dumped.model_dump_json()
        twin = MnemosyneMemory.load_component(dumped)
        with pytest.raises(UnauthorizedError):
            asyncio.run(twin.query())
        monkeypatch.setenv("MNEM_TOKEN", token)
        assert asyncio.run(contents(twin)) == [exact(text("kept"))]
        end_sidecars()
