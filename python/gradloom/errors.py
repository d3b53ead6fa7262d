"""Exceptions. Every exception has the message of the engine, which says what is wrong and where."""

from __future__ import annotations


class GradloomError(Exception):
    """Any error of the engine."""


class InvalidInputError(GradloomError, ValueError):
    """An argument, option or file is wrong."""


class NotFoundError(GradloomError, FileNotFoundError):
    """A file, recipe or circuit does not exist."""


class ReadWriteError(GradloomError, OSError):
    """A file could not be read or written."""


class BusyError(GradloomError, OSError):
    """Another process uses the run folder."""


class NumericError(GradloomError, ArithmeticError):
    """A loss or gradient is not finite: training diverged."""


class UnsupportedError(GradloomError, NotImplementedError):
    """A valid call that this model or build does not support."""


class UnsupportedNameError(UnsupportedError, AttributeError):
    """A method of pykan that does not exist in gradloom: hasattr() is false, and calling it says what to use."""


class DeviceError(GradloomError, RuntimeError):
    """A device is missing, unsuitable or lost."""


class OutOfMemoryError(GradloomError, MemoryError):
    """Memory of the host or the device is exhausted."""


class InternalError(GradloomError, RuntimeError):
    """An error in gradloom itself."""


class NotFittedError(GradloomError, ValueError, AttributeError):
    """The model has not been trained yet."""


_BY_STATUS: dict[int, type[GradloomError]] = {
    1: InvalidInputError,
    2: NotFoundError,
    3: ReadWriteError,
    4: BusyError,
    5: NumericError,
    6: UnsupportedError,
    7: DeviceError,
    8: OutOfMemoryError,
}


def error_of(status: int, message: str) -> GradloomError:
    """The exception of a status of the C ABI."""
    return _BY_STATUS.get(status, InternalError)(message)
