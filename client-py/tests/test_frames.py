"""Framing and the queue before the pipe, piece by piece."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
import itertools
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnem_autogen._frames import FrameError, FrameReader, frame
from mnem_autogen._outbox import Outbox


@given(bodies=st.lists(st.binary(max_size=60), max_size=5), cuts=st.lists(st.integers(0, 300), max_size=8))
def test_bodies_come_whole_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(frame(body) for body in bodies)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    reader = FrameReader()
    got = [body for start, end in itertools.pairwise(edges) for body in reader.feed(stream[start:end])]
    assert got == bodies


def test_length_counts_bytes_not_characters() -> None:
    stream = frame("漢👩‍👩‍👧".encode()) + frame(b"next")
    reader = FrameReader()
    got = [body for position in range(len(stream)) for body in reader.feed(stream[position : position + 1])]
    assert got == ["漢👩‍👩‍👧".encode(), b"next"]


def test_other_header_fields_and_other_case_are_read() -> None:
    assert FrameReader().feed(b"content-type: x\r\nCONTENT-LENGTH:  2 \r\n\r\n{}") == [b"{}"]


@pytest.mark.parametrize(
    "stream", [b"hello\n", b"\n", b"Content-Length: -1\r\n\r\n", b"Content-" + b"x" * 2000]
)
def test_what_is_no_frame_is_an_error_at_once(stream: bytes) -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(stream)


def test_a_body_over_the_limit_is_an_error_before_it_arrives() -> None:
    reader = FrameReader()
    reader.body_limit = 10
    assert reader.feed(frame(b"x" * 10)) == [b"x" * 10]
    with pytest.raises(FrameError, match="11 bytes"):
        reader.feed(b"Content-Length: 11\r\n\r\n")


def test_the_outbox_keeps_whole_frames_in_order_and_never_waits() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    outbox = Outbox(functools.partial(os.write, write))
    frames = [bytes([number]) * 50_000 for number in range(20)]
    waits = [outbox.put(each) for each in frames]
    assert waits[-1]
    assert not outbox.empty
    got = b""
    while not outbox.empty:
        got += os.read(read, 1 << 20)
        outbox.flush()
    os.close(write)
    while chunk := os.read(read, 1 << 20):
        got += chunk
    os.close(read)
    assert got == b"".join(frames)


def test_the_outbox_says_when_its_reader_is_gone() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    outbox = Outbox(functools.partial(os.write, write))
    os.close(read)
    assert outbox.put(b"x"), "the watcher has to learn of it"
    assert outbox.broken
    assert outbox.empty
    assert not outbox.put(b"x")
    os.close(write)
