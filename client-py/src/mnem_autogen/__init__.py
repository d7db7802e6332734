"""AutoGen memory kept by the mnem sidecar: durable, versioned, shared by many processes.

`MnemosyneMemory` is an `autogen_core.memory.Memory`; everything else here is what its methods take, return
and raise.
"""

from ._errors import (
    BusyError,
    ConflictError,
    CorruptStoreError,
    InvalidContentError,
    InvalidRefError,
    MnemError,
    NotFoundError,
    ProtocolError,
    SidecarError,
    StoreIoError,
    TooLargeError,
    UnauthorizedError,
)
from ._memory import MnemosyneMemory, MnemosyneMemoryConfig
from ._types import AddResult, Blame, Commit, ForgetResult, MemoryItem, Provenance, Snapshot, Stats
from ._version import __version__

__all__ = [
    "AddResult",
    "Blame",
    "BusyError",
    "Commit",
    "ConflictError",
    "CorruptStoreError",
    "ForgetResult",
    "InvalidContentError",
    "InvalidRefError",
    "MemoryItem",
    "MnemError",
    "MnemosyneMemory",
    "MnemosyneMemoryConfig",
    "NotFoundError",
    "ProtocolError",
    "Provenance",
    "SidecarError",
    "Snapshot",
    "Stats",
    "StoreIoError",
    "TooLargeError",
    "UnauthorizedError",
    "__version__",
]
