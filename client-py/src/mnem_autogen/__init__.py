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
from ._types import (
    AddResult,
    Blame,
    Branch,
    Change,
    Commit,
    ForgetResult,
    HistoryEntry,
    ImportResult,
    MemoryItem,
    MergeConflict,
    MergeResult,
    Problem,
    Provenance,
    Renumbering,
    Snapshot,
    Stats,
    VerifyResult,
)
from ._version import __version__

__all__ = [
    "AddResult",
    "Blame",
    "Branch",
    "BusyError",
    "Change",
    "Commit",
    "ConflictError",
    "CorruptStoreError",
    "ForgetResult",
    "HistoryEntry",
    "ImportResult",
    "InvalidContentError",
    "InvalidRefError",
    "MemoryItem",
    "MergeConflict",
    "MergeResult",
    "MnemError",
    "MnemosyneMemory",
    "MnemosyneMemoryConfig",
    "NotFoundError",
    "Problem",
    "ProtocolError",
    "Provenance",
    "Renumbering",
    "SidecarError",
    "Snapshot",
    "Stats",
    "StoreIoError",
    "TooLargeError",
    "UnauthorizedError",
    "VerifyResult",
    "__version__",
]
