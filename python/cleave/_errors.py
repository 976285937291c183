"""The exceptions of the package: one family, with the texts of the library."""
from __future__ import annotations

from typing import NoReturn

from . import _cleave


class Error(Exception):
    """The base of all errors of Cleave. `status` is the library's status: "invalid argument", for example."""

    status: str = "internal error"


class InvalidArgument(Error, ValueError):
    """A caller's mistake: a wrong shape, an unknown option."""


class InvalidModel(Error, ValueError):
    """A file is damaged or violates its specification."""


class NotSupported(Error):
    """The request is valid, but no device here can do it. The text says what could."""


class NotFound(Error, FileNotFoundError):
    """A file, device, value or name does not exist."""


class OutOfMemory(Error, MemoryError):
    """Memory of the host or of a device."""


class FileError(Error, OSError):
    """The operating system reported a failed read or write."""


class DeviceError(Error):
    """A call of a driver failed, or a device did not answer."""


class TooLarge(Error):
    """A group of nodes does not fit its device."""


class Cancelled(Error):
    """The run was cancelled."""


class TimedOut(Error, TimeoutError):
    """The run exceeded its time limit."""


# Indexed by clv_status.
_CLASSES: tuple[type[Error], ...] = (Error, InvalidArgument, InvalidModel, NotSupported, NotFound, OutOfMemory, FileError, DeviceError,
                                     TooLarge, Error, Cancelled, TimedOut)


def raise_status(status: int, message: str) -> NoReturn:
    """Raises the exception of a status of the library."""
    error = (_CLASSES[status] if 0 <= status < len(_CLASSES) else Error)(message)
    error.status = _cleave.status_name(status)
    raise error
