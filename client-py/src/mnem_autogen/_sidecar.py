"""The sidecar as a process: started with a clean environment, its last words on stderr kept."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable
from typing import IO

from ._errors import MnemError, ProtocolError, SidecarError
from ._outbox import Outbox
from ._program import Program, clean_environment, find_program
from ._transport import Abandoned, Opening, Outcome, Transport

START_SECONDS = 30.0
"""Longest time from the start of the process to its answer to `initialize`."""
_LAST_WORDS_SECONDS = 2.0
_POLL_SECONDS = 0.005
_KEPT_LINES = 20
_KEPT_LINE_BYTES = 4096
_CHUNK = 1 << 16


class StderrTail:
    """The last lines of a stream of which nothing else is kept."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._open = b""
        self.total = 0
        """Bytes of the whole stream so far."""

    def feed(self, chunk: bytes) -> None:
        """Take what arrived."""
        self.total += len(chunk)
        *lines, self._open = (self._open + chunk).split(b"\n")
        self._open = self._open[:_KEPT_LINE_BYTES]
        for line in lines[-_KEPT_LINES:]:
            self._keep(line)

    def lines(self) -> list[str]:
        """The lines kept, oldest first, with one that has no end yet."""
        kept = list(self._lines)
        return [*kept, self._open.decode("utf-8", "replace")] if self._open.strip() else kept

    def _keep(self, line: bytes) -> None:
        if line.strip():
            self._lines.append(line[:_KEPT_LINE_BYTES].decode("utf-8", "replace").rstrip("\r"))


class Sidecar(Transport):
    """One sidecar process and our ends of its pipes, none of which ever blocks."""

    def __init__(self, program: Program, store: str) -> None:
        """Start it.

        `start_new_session` keeps a terminal's Ctrl-C from it: the client ends it once its own work is done.
        The parent's id lets it see our death where the end of its input never comes, because some other
        process holds the pipe.

        Raises:
            SidecarError: When it can't be started at all.
        """
        self._program = program
        self._tail = StderrTail()
        command = [program.node, program.entry, "stdio", "--store", store, "--parent-pid", str(os.getpid())]
        try:
            self._process = subprocess.Popen(  # noqa: S603
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=clean_environment(os.environ),
                cwd=os.sep,
                start_new_session=True,
                close_fds=True,
            )
        except OSError as error:
            raise SidecarError(f"{program.node} could not be started: {error.strerror}") from error
        self._stdin = _pipe(self._process.stdin)
        self._stdout = _pipe(self._process.stdout)
        self._stderr = _pipe(self._process.stderr)
        self.outbox = Outbox(functools.partial(os.write, self._stdin.fileno()))

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def stderr_bytes(self) -> int:
        """How much it has printed on stderr."""
        return self._tail.total

    @property
    def reading(self) -> int:
        """Its stdout."""
        return self._stdout.fileno()

    @property
    def writing(self) -> int:
        """Its stdin."""
        return -1 if self._stdin.closed else self._stdin.fileno()

    def read(self, size: int) -> bytes | None:
        """Read what is there, at most `size` bytes: `b""` at the end, None when nothing is there yet."""
        return self._stdout.read(size)

    def finish_writing(self) -> None:
        """End its input, upon which it finishes what it took, and ends."""
        self._stdin.close()

    def force(self) -> None:
        """Kill it, unless it has ended."""
        self._process.send_signal(signal.SIGKILL)

    def aside(self) -> tuple[int, Callable[[], bool]]:
        """Its stderr, which must be read, lest it stop when the pipe is full."""
        return self._stderr.fileno(), self._read_stderr

    def reap(self) -> None:
        """Its stdout has ended, so the process is about to: hear its last words, and see that it is gone."""
        deadline = time.monotonic() + _LAST_WORDS_SECONDS
        talks = True
        while self._process.poll() is None:
            if time.monotonic() >= deadline:
                self.force()
            talks = talks and self._read_stderr()
            time.sleep(_POLL_SECONDS)
        while chunk := self._stderr.read(_CHUNK):
            self._tail.feed(chunk)

    @property
    def failed_at_will(self) -> bool:
        """Whether it ended with a status of its own choosing that is not success."""
        return self._process.returncode is not None and self._process.returncode > 0

    def story(self) -> str:
        """How it ended and what it printed last, as the rest of a sentence about it."""
        code = self._process.returncode
        if code is None:
            how = "is still running"
        elif code < 0:
            how = f"was ended by {_signal_name(-code)}"
        else:
            how = f"ended with status {code}"
        lines = self._tail.lines()
        said = (
            "it printed nothing on stderr" if not lines else "its last lines on stderr:\n" + "\n".join(lines)
        )
        return f"{how} ({self._program.node} {self._program.entry}); {said}"

    def tells_of_faults(self) -> bool:
        """It does: what it printed may say why."""
        return True

    def misread(self, reason: str, opened: bool) -> MnemError:
        """Somebody else wrote on its stdout, or it is no sidecar."""
        _ = opened
        return ProtocolError(f"the sidecar wrote something else than frames on its stdout: {reason}")

    def close(self) -> None:
        """Close our ends of all pipes."""
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()

    def disown(self) -> None:
        """In a forked child: close the inherited ends, that they hold nothing open; forget the process."""
        self.close()
        # It is the parent's child, not ours: nothing to wait for, and no warning that it still runs.
        self._process.returncode = 0

    def _read_stderr(self) -> bool:
        chunk: bytes | None = self._stderr.read(_CHUNK)
        if chunk:
            self._tail.feed(chunk)
        return chunk != b""


class SpawnRoute:
    """A sidecar of this process's own on a store directory."""

    def __init__(self, store: str) -> None:
        self._store = store
        self.where = f"on {store}"
        self.patience: float | None = None
        self.start_seconds = START_SECONDS

    def token(self) -> str | None:
        """None: whoever starts a process owns it."""
        return None

    def open(self, opening: Opening, deadline: float) -> Transport:
        """Start it. Its start can't be waited for here: its answer to `initialize` says that it is there."""
        _ = deadline
        program = find_program()
        return opening.adopt(lambda: Sidecar(program, self._store))

    def unanswered(self, session: Outcome) -> Exception:
        """Why it did not come to be. That it was killed is no reason not to try again."""
        transport = session.transport
        if session.timed_out:
            return SidecarError(f"the sidecar did not answer within {self.start_seconds:.0f} s of its start")
        if session.fault is not None:
            return session.fault
        if isinstance(transport, Sidecar) and transport.failed_at_will:
            return SidecarError(f"the sidecar could not start {self.where}")
        return Abandoned()

    def advice(self) -> str:
        """Nothing: what it printed says it."""
        return ""


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    os.set_blocking(stream.fileno(), False)
    return stream


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
