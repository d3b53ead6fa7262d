"""Arrays of numpy as the C ABI takes them, and what users pass as arrays."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._library import MOST_DIMENSIONS, Array
from .errors import InvalidInputError

_CODES = {"f4": 0, "f8": 1, "u1": 2, "b1": 2, "i4": 3, "i8": 4}

AnyArray = NDArray[Any]


# gradloom_array: data, dtype, dimensions, shape, strides. Packing is several times faster than filling a structure.
_ARRAY = struct.Struct("=Qii4q4q")
_NO_MORE = (0,) * MOST_DIMENSIONS


def borrowed(array: AnyArray) -> bytes:
    """The description of an array, which must outlive it."""
    missing = _NO_MORE[array.ndim :]
    data = array.__array_interface__["data"][0]
    code = _CODES[array.dtype.str[1:]]
    return _ARRAY.pack(data, code, array.ndim, *array.shape, *missing, *array.strides, *missing)


def borrowed_matrix(data: int, rows: int, columns: int) -> bytes:
    """The same of a contiguous matrix of float64 at an address; for calls that take microseconds."""
    return _ARRAY.pack(data, 1, 2, rows, columns, 0, 0, 8 * columns, 8, 0, 0)


def borrowed_integers(data: int, count: int) -> bytes:
    """The same of contiguous int64 at an address."""
    return _ARRAY.pack(data, 4, 1, count, 0, 0, 0, 8, 0, 0, 0)


def structure(array: AnyArray) -> Array:
    """The same as a field of another structure."""
    return Array.from_buffer_copy(borrowed(array))


def _usable(array: AnyArray) -> bool:
    """Whether the engine can read the memory as it is."""
    size = array.itemsize
    return (
        array.dtype.isnative
        and array.flags.aligned
        and array.ndim <= MOST_DIMENSIONS
        and all(s >= 0 and s % size == 0 for s in array.strides)
    )


def numbers(values: Any, name: str, dimensions: tuple[int, ...]) -> AnyArray:
    """float32 or float64 in memory that the engine can read; without a copy where it is that already."""
    array = as_array(values, name)
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except TypeError as error:
            first = next((v for v in array.ravel().tolist() if not isinstance(v, (int, float, str))), None)
            raise TypeError(f"{name} holds {first!r}: {error}") from error
        except ValueError as error:
            first = next((v for v in array.ravel().tolist() if not isinstance(v, (int, float))), None)
            raise InvalidInputError(
                f"{name} contains {first!r}, which is not a number; KANRegressor and KANClassifier take columns of text "
                "in a DataFrame"
            ) from error
        except OverflowError as error:
            raise InvalidInputError(f"{name} contains an integer that is too large for float64") from error
    if array.dtype.kind == "c":
        raise InvalidInputError(f"{name} holds complex numbers. Complex data not supported")
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} is of {array.dtype}, but must hold numbers")
    if array.dtype.str[1:] not in ("f4", "f8") or not array.dtype.isnative:
        array = array.astype(np.float64)
    if array.ndim not in dimensions:
        wanted = " or ".join(str(d) for d in dimensions)
        hint = "; reshape(-1, 1) makes it a column" if array.ndim == 1 else ""
        raise InvalidInputError(f"{name} has {array.ndim} dimensions, but must have {wanted}{hint}")
    return array if _usable(array) else np.ascontiguousarray(array)


def integers(values: Any, name: str) -> NDArray[np.int64]:
    """int64, contiguous, of one dimension."""
    array = as_array(values, name)
    if array.dtype.kind not in "iub":
        raise TypeError(f"{name} is of {array.dtype}, but must hold integers")
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InvalidInputError(f"{name} contains {int(array.max())}, which is too large for int64")
    if array.ndim != 1:
        raise InvalidInputError(f"{name} has {array.ndim} dimensions, but must have 1")
    return np.ascontiguousarray(array, dtype=np.int64)


def bits(values: Any, name: str, dimensions: int) -> NDArray[np.uint8]:
    """0 and 1 as uint8."""
    array = as_array(values, name)
    if array.ndim != dimensions:
        raise InvalidInputError(f"{name} has {array.ndim} dimensions, but must have {dimensions}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} is of {array.dtype}, but must hold bits")
    if array.size and not np.isin(array, (0, 1)).all():
        wrong = array[~np.isin(array, (0, 1))].ravel()[0]
        raise InvalidInputError(f"{name} contains {wrong}; bits are 0 or 1")
    return np.ascontiguousarray(array, dtype=np.uint8)


def as_array(values: Any, name: str) -> AnyArray:
    """A numpy array of lists, tensors, tables; without a copy where that is possible."""
    if isinstance(values, np.ndarray) and type(values) is np.ndarray:
        return values
    if isinstance(values, np.ma.MaskedArray) and values.mask is not np.ma.nomask and bool(np.any(values.mask)):
        raise InvalidInputError(f"{name} has masked values; fill or drop them")
    if type(values).__module__.split(".")[0] == "scipy":
        raise TypeError(f"{name} is a sparse matrix; sparse data is not supported, use toarray() to make it dense")
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # a tensor of torch
        values = values.detach().cpu().numpy()
    if values is None or isinstance(values, (str, bytes, dict, set)):
        raise TypeError(f"{name} is {values!r}, but must be an array")
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise InvalidInputError(f"{name} is not an array: {error}") from error
