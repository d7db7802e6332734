"""What an endpoint, a token and a timeout may look like, and where they come from."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

from mnem_autogen import MnemosyneMemory, SidecarError, _registry
from mnem_autogen._endpoint import read_endpoint
from mnem_autogen._settings import find_connect_timeout, find_token
from support import end_sidecars, run_script

SECRET = "mnem_a-secret-that-nobody-may-see"


@pytest.mark.parametrize(
    ("text", "canonical", "listen"),
    [
        ("unix:///run/mnem/mnem.sock", "unix:///run/mnem/mnem.sock", "unix:/run/mnem/mnem.sock"),
        ("unix:/run/mnem.sock", "unix:///run/mnem.sock", "unix:/run/mnem.sock"),
        ("unix:/a/../b c@d.sock", "unix:///b c@d.sock", "unix:/b c@d.sock"),
        ("tcp://Memory.Example.org:7777", "tcp://memory.example.org:7777", "tcp:memory.example.org:7777"),
        ("tcp:127.0.0.1:1", "tcp://127.0.0.1:1", "tcp:127.0.0.1:1"),
        ("tls://[::1]:65535", "tls://[::1]:65535", "tls:[::1]:65535"),
        ("tls://[fe80::1%eth0]:7", "tls://[fe80::1%eth0]:7", "tls:[fe80::1%eth0]:7"),
    ],
)
def test_an_endpoint_is_read_and_shown_in_one_form(text: str, canonical: str, listen: str) -> None:
    endpoint = read_endpoint(text)
    assert str(endpoint) == canonical
    assert endpoint.listen == listen
    assert read_endpoint(canonical) == endpoint == read_endpoint(listen)


def test_a_relative_socket_is_fixed_when_the_memory_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    memory = MnemosyneMemory(endpoint="unix:run/mnem.sock")
    monkeypatch.chdir("/")
    assert memory.dump_component().config["endpoint"] == f"unix://{tmp_path}/run/mnem.sock"


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("", '"tcp://HOST:PORT"'),
        ("host:7777", '"tcp://HOST:PORT"'),
        ("http://host:7777", '"tcp://HOST:PORT"'),
        ("/run/mnem.sock", '"unix:///PATH/OF/SOCKET"'),
        ("unix:", "no path"),
        ("unix://", "no absolute path"),
        ("unix://run/mnem.sock", 'give "unix:///run/mnem.sock"'),
        ("unix:///a\0b", "no path"),
        ("unix:///" + "x" * 107, "has at most"),
        ("unix:///" + "é" * 54, "109 bytes"),
        ("tcp://host", "no HOST:PORT"),
        ("tcp://:7777", "no HOST:PORT"),
        ("tcp://host:7777/path", "no HOST:PORT"),
        ("tcp://ho st:7777", "no HOST:PORT"),
        ("tcp://::1:7777", "in brackets"),
        ("tcp://[host]:7777", "no IPv6 address"),
        ("tls://.host:7777", "a host that can be none"),
        ("tls://a..b:7777", "a host that can be none"),
        ("tls://" + "x" * 64 + ":7777", "a host that can be none"),
        ("tcp://host:0", "from 1 to 65535"),
        ("tls://host:65536", "from 1 to 65535"),
        (7777, "of type int"),
        (b"tcp://host:1", "of type bytes"),
    ],
)
def test_what_is_no_endpoint_is_refused_by_the_constructor(endpoint: Any, said: str) -> None:
    with pytest.raises(ValueError, match="endpoint") as caught:
        MnemosyneMemory(endpoint=endpoint)
    assert said in str(caught.value)


def test_a_secret_in_an_endpoint_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="endpoint") as caught:
        MnemosyneMemory(endpoint=f"tcp://{SECRET}@host:7777")
    assert SECRET not in str(caught.value)
    assert "own argument" in str(caught.value)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5", True])
def test_what_is_no_timeout_is_refused_by_the_constructor(seconds: Any) -> None:
    with pytest.raises(ValueError, match="connect_timeout"):
        MnemosyneMemory(endpoint="tcp://host:1", connect_timeout=seconds)


def test_the_timeout_comes_from_the_argument_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_connect_timeout(None) == 10
    monkeypatch.setenv("MNEM_CONNECT_TIMEOUT", "2.5")
    assert find_connect_timeout(None) == 2.5
    assert find_connect_timeout(1.0) == 1
    for bad in ("soon", "-1", "nan"):
        monkeypatch.setenv("MNEM_CONNECT_TIMEOUT", bad)
        with pytest.raises(SidecarError, match="MNEM_CONNECT_TIMEOUT"):
            asyncio.run(MnemosyneMemory(endpoint="unix:///nowhere").query())


def test_the_token_comes_from_the_argument_the_variable_or_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_token(None) is None
    file = tmp_path / "token"
    monkeypatch.setenv("MNEM_TOKEN_FILE", str(file))
    with pytest.raises(SidecarError, match=r"token that MNEM_TOKEN_FILE names can't be read \(No such"):
        find_token(None)
    file.write_text(" \n")
    with pytest.raises(SidecarError, match="is empty"):
        find_token(None)
    file.write_text("\n first \r\n")
    assert find_token(None) == "first"
    file.write_text("second")
    assert find_token(None) == "second", "read again"
    monkeypatch.setenv("MNEM_TOKEN", "variable")
    assert find_token(None) == "variable"
    assert find_token("explicit") == "explicit"


def test_bytes_that_are_no_token_are_refused_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\xff" + SECRET.encode())
    monkeypatch.setenv("MNEM_TOKEN_FILE", str(file))
    with pytest.raises(SidecarError) as caught:
        asyncio.run(MnemosyneMemory(endpoint="unix:///nowhere").query())
    assert "UTF-8" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(ValueError, match="token"):
        MnemosyneMemory(endpoint="unix:///nowhere", token="\ud800")


def test_an_endpoint_of_the_environment_counts_where_neither_is_given(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEM_ENDPOINT", "unix:///nowhere/mnem.sock")
    monkeypatch.setenv("MNEM_CONNECT_TIMEOUT", "0.05")
    with pytest.raises(SidecarError, match="unix:///nowhere/mnem.sock"):
        asyncio.run(MnemosyneMemory().query())
    assert asyncio.run(MnemosyneMemory(store=store).items()) == []
    monkeypatch.setenv("MNEM_ENDPOINT", "nowhere")
    with pytest.raises(SidecarError, match=r"MNEM_ENDPOINT can't be used.*or unset it"):
        asyncio.run(MnemosyneMemory().query())


def test_a_dump_holds_endpoint_and_timeout_and_never_the_token() -> None:
    memory = MnemosyneMemory("m", endpoint="tcp:host:1", token=SECRET, connect_timeout=3)
    dumped = memory.dump_component()
    assert dumped.config == {
        "name": "m",
        "endpoint": "tcp://host:1",
        "author": "agent",
        "connect_timeout": 3.0,
    }
    assert SECRET not in repr(dumped) + repr(memory) + repr(memory._to_config())
    loaded = MnemosyneMemory.load_component(dumped)
    assert loaded.dump_component() == dumped
    config = {**dumped.config, "token": SECRET}
    assert SECRET not in repr(loaded.component_config_schema.model_validate(config))


def test_a_copy_for_another_process_keeps_the_token() -> None:
    memory = MnemosyneMemory(endpoint="tcp://host:1", token=SECRET)
    for twin in (copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))):
        assert twin._token == SECRET


def test_memories_share_a_link_only_by_the_same_endpoint_token_and_timeout() -> None:
    def link(endpoint: str, token: str | None = None, timeout: float = 5) -> object:
        return _registry.link_to(read_endpoint(endpoint), token, timeout)

    assert link("tcp://host:1") is link("tcp:HOST:1")
    links = [link("tcp://host:1"), link("tls://host:1"), link("tcp://host:1", "a"), link("tcp://host:1", "b")]
    links.append(link("tcp://host:1", None, 6))
    assert len(set(map(id, links))) == len(links)


def test_constructing_connects_to_nothing_and_starts_no_thread() -> None:
    done = run_script(
        "import threading; from mnem_autogen import MnemosyneMemory as M;"
        "M(endpoint='tcp://nowhere.invalid:1', token='t'); print(threading.active_count())"
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
    end_sidecars()
