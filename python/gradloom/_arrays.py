"""Arrays of numpy as the C ABI takes them, and what users pass as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._library import MOST_DIMENSIONS, Array
from .errors import InvalidInputError

_CODES = {"f4": 0, "f8": 1, "u1": 2, "b1": 2, "i4": 3, "i8": 4}

AnyArray = NDArray[Any]


def borrowed(array: AnyArray) -> Array:
    """The description of an array; it must live as long as the result is used."""
    result = Array()
    interface = array.__array_interface__
    result.data = interface["data"][0] or None
    result.dtype = _CODES[interface["typestr"][1:]]
    result.dimensions = array.ndim
    for d in range(array.ndim):
        result.shape[d] = array.shape[d]
        result.strides[d] = array.strides[d]
    return result


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
                f"{name} holds {first!r}, which is no number; tables with text are taken as a pandas DataFrame"
            ) from error
        except OverflowError as error:
            raise InvalidInputError(f"{name} holds an integer that no float64 can hold") from error
    if array.dtype.kind == "c":
        raise InvalidInputError(f"{name} holds complex numbers. Complex data not supported")
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} is of {array.dtype}, but must hold numbers")
    if array.dtype.str[1:] not in ("f4", "f8") or not array.dtype.isnative:
        array = array.astype(np.float64)
    if array.ndim not in dimensions:
        wanted = " or ".join(str(d) for d in dimensions)
        hint = "; reshape(-1, 1) makes a column of it" if array.ndim == 1 else ""
        raise InvalidInputError(f"{name} has {array.ndim} dimensions, but must have {wanted}{hint}")
    return array if _usable(array) else np.ascontiguousarray(array)


def integers(values: Any, name: str) -> NDArray[np.int64]:
    """int64, contiguous, of one dimension."""
    array = as_array(values, name)
    if array.dtype.kind not in "iub":
        raise TypeError(f"{name} is of {array.dtype}, but must hold integers")
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InvalidInputError(f"{name} holds {int(array.max())}, more than an int64 can hold")
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
        raise InvalidInputError(f"{name} holds {wrong}; bits are 0 or 1")
    return np.ascontiguousarray(array, dtype=np.uint8)


def as_array(values: Any, name: str) -> AnyArray:
    """A numpy array of lists, tensors, tables; without a copy where that is possible."""
    if isinstance(values, np.ndarray) and type(values) is np.ndarray:
        return values
    if isinstance(values, np.ma.MaskedArray) and values.mask is not np.ma.nomask and bool(np.any(values.mask)):
        raise InvalidInputError(f"{name} is masked in places; fill or drop what is missing")
    if type(values).__module__.split(".")[0] == "scipy":
        raise TypeError(f"{name} is a sparse matrix; sparse data is not supported, use toarray() to make it dense")
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # a tensor of torch
        values = values.detach().cpu().numpy()
    if values is None or isinstance(values, (str, bytes, dict, set)):
        raise TypeError(f"{name} is {values!r}, but must be an array")
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise InvalidInputError(f"{name} is no array: {error}") from error
