"""What a connection needs to know about how its sidecar is reached: by pipes to a process, or by a socket."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol, TypeVar

from ._errors import MnemError
from ._outbox import Outbox
from ._wake import WakePipe

_T = TypeVar("_T", bound="Transport")


class Unreached(Exception):  # noqa: N818 (an outcome that is waited out, not an error)
    """No session came about this time; a moment later one may. Its text is the rest of a sentence."""


class Abandoned(Exception):  # noqa: N818 (as above)
    """While a sidecar was still being reached, an end was wanted."""


class Wish:
    """What is wanted of a connection's thread; set by any thread, which then wakes it."""

    def __init__(self) -> None:
        self.ending = False
        """Finish what was taken, and end."""
        self.killing = False
        """End by force."""


class Transport(ABC):
    """Bytes to a sidecar and back. No end of it ever blocks; all but `outbox` is its thread's alone."""

    outbox: Outbox

    @property
    @abstractmethod
    def reading(self) -> int:
        """The file descriptor to watch for something to `read`."""

    @property
    @abstractmethod
    def writing(self) -> int:
        """The file descriptor to watch for room to `outbox.flush`; -1 after `finish_writing`."""

    @abstractmethod
    def read(self, size: int) -> bytes | None:
        """Read what is there, about `size` bytes: `b""` at the end, None when nothing is there yet."""

    @abstractmethod
    def finish_writing(self) -> None:
        """Nothing more will come from us: upon that the sidecar finishes what it took, and ends."""

    @abstractmethod
    def force(self) -> None:
        """End the other side, or at least our part of it, without waiting for anything."""

    @abstractmethod
    def close(self) -> None:
        """Close every file descriptor; may be called twice."""

    @abstractmethod
    def disown(self) -> None:
        """In a forked child: close what was inherited, in a way that the parent does not notice."""

    @abstractmethod
    def story(self) -> str:
        """How it ended, as the rest of a sentence about the sidecar."""

    def tells_of_faults(self) -> bool:
        """Whether its `story` helps to understand an error that was found on our side."""
        return False

    @abstractmethod
    def misread(self, reason: str, opened: bool) -> MnemError:
        """The error for something else than frames; `opened`: after `initialize` was answered."""

    @property
    def pid(self) -> int | None:
        """The process's id, where it is a process of ours."""
        return None

    @property
    def stderr_bytes(self) -> int:
        """How much it has printed on stderr."""
        return 0

    def aside(self) -> tuple[int, Callable[[], bool]] | None:
        """Another file descriptor to watch, and what reads it, False at its end."""
        return None

    def reap(self) -> None:  # noqa: B027 (there may be nothing to do)
        """What was read has ended: see that the rest is gone too. Bounded."""


class Opening(Protocol):
    """What a route is given while it opens a transport, on the connection's thread."""

    wish: Wish
    wake: WakePipe

    def adopt(self, make: Callable[[], _T]) -> _T:
        """Have a transport made with forks held off, and know of it in a forked child."""
        ...

    def stage(self, text: str) -> None:
        """Note what is waited for from now on, as the rest of a sentence about the sidecar."""
        ...


class Outcome(Protocol):
    """How a session went that ended before `initialize` was answered."""

    @property
    def transport(self) -> Transport:
        """What it went over."""
        ...

    @property
    def fault(self) -> MnemError | None:
        """An error that the sidecar answered, or that was found in what it sent."""
        ...

    @property
    def timed_out(self) -> bool:
        """Whether there was no answer in time."""
        ...


class Route(Protocol):
    """How a sidecar is had."""

    @property
    def where(self) -> str:
        """The rest of "the sidecar …": `on DIRECTORY` or `at ENDPOINT`."""
        ...

    @property
    def patience(self) -> float | None:
        """How many seconds a call waits for one to be there; None: the first attempt counts."""
        ...

    @property
    def start_seconds(self) -> float:
        """How long an attempt may take."""
        ...

    def token(self) -> str | None:
        """What to show with `initialize`."""
        ...

    def open(self, opening: Opening, deadline: float) -> Transport:
        """Reach it.

        Raises:
            Unreached: It can't be reached now.
            Abandoned: An end was wanted meanwhile.
            MnemError: It can't be reached, and trying again would not help.
        """
        ...

    def unanswered(self, session: Outcome) -> Exception:
        """Why a session came to nothing: `Unreached`, or an error for whoever waits."""
        ...

    def advice(self) -> str:
        """What to look at where none could be reached, as a sentence."""
        ...
