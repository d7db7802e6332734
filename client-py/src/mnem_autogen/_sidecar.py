"""The sidecar as a process: started with a clean environment, its last words on stderr kept."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import deque
from typing import IO

from ._errors import SidecarError
from ._program import Program, clean_environment

_KEPT_LINES = 20
_KEPT_LINE_BYTES = 4096


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


class Sidecar:
    """One sidecar process and our ends of its pipes, none of which ever blocks."""

    def __init__(self, program: Program, store: str) -> None:
        """Start it.

        `start_new_session` keeps a terminal's Ctrl-C from it: the client ends it once its own work is done.
        The parent's id lets it see our death where the end of its input never comes, because some other
        process holds the pipe.

        Raises:
            SidecarError: When it can't be started at all.
        """
        self.program = program
        self.tail = StderrTail()
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
        self.stdin = _pipe(self._process.stdin)
        self.stdout = _pipe(self._process.stdout)
        self.stderr = _pipe(self._process.stderr)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def ended(self) -> bool:
        """Whether the process has ended; it is no zombie after this has said so."""
        return self._process.poll() is not None

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        self._process.send_signal(number)

    @property
    def failed_at_will(self) -> bool:
        """Whether it ended with a status of its own choosing that is not success."""
        return self._process.returncode is not None and self._process.returncode > 0

    def obituary(self) -> str:
        """How it ended and what it printed last, as the rest of a sentence about it."""
        code = self._process.returncode
        if code is None:
            how = "is still running"
        elif code < 0:
            how = f"was ended by {_signal_name(-code)}"
        else:
            how = f"ended with status {code}"
        lines = self.tail.lines()
        said = (
            "it printed nothing on stderr" if not lines else "its last lines on stderr:\n" + "\n".join(lines)
        )
        return f"{how} ({self.program.node} {self.program.entry}); {said}"

    def close_stdin(self) -> None:
        """End its input, upon which it finishes what it took, and ends."""
        self.stdin.close()

    def close(self) -> None:
        """Close our ends of all pipes."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()

    def disown(self) -> None:
        """In a forked child: close the inherited ends, that they hold nothing open; forget the process."""
        self.close()
        # It is the parent's child, not ours: nothing to wait for, and no warning that it still runs.
        self._process.returncode = 0


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    os.set_blocking(stream.fileno(), False)
    return stream


def read_some(pipe: IO[bytes], size: int) -> bytes | None:
    """Read what is there, at most `size` bytes: `b""` at the end, None when nothing is there yet."""
    return pipe.read(size)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
