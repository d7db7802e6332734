"""The client's version, told to the sidecar at the start of each session."""

__version__ = "0.1.0"
