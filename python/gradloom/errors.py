"""What can go wrong. Every error has the message of the engine, which names what is wrong and where."""

from __future__ import annotations


class GradloomError(Exception):
    """Any error of the engine."""


class InvalidInputError(GradloomError, ValueError):
    """An argument, option or file is wrong."""


class NotFoundError(GradloomError, FileNotFoundError):
    """A file, recipe or circuit does not exist."""


class ReadWriteError(GradloomError, OSError):
    """The system refused to read or write."""


class BusyError(GradloomError, OSError):
    """Somebody else uses the run folder."""


class NumericError(GradloomError, ArithmeticError):
    """Training left the finite numbers."""


class UnsupportedError(GradloomError, NotImplementedError):
    """A valid request that this model or build cannot serve."""


class DeviceError(GradloomError, RuntimeError):
    """There is no such device, or it cannot do this."""


class OutOfMemoryError(GradloomError, MemoryError):
    """Memory of the host or the device is exhausted."""


class InternalError(GradloomError, RuntimeError):
    """A mistake of gradloom."""


class NotFittedError(GradloomError, ValueError, AttributeError):
    """The model was not trained yet."""


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
