"""Options have the names of recipe keys; None leaves one to the engine, which alone has the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._library import json_of, lib
from .errors import InvalidInputError


def put(recipe: dict[str, Any], key: str, value: Any) -> None:
    """Sets the key "model.grid" of a recipe as {"model": {"grid": value}}; None sets nothing."""
    if value is None:
        return
    *tables, last = key.split(".")
    for table in tables:
        recipe = recipe.setdefault(table, {})
        if not isinstance(recipe, dict):
            raise InvalidInputError(f"options: '{key}' is in '{table}', which is not a table")
    recipe[last] = value


def nested(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """{"model.grid": 5} or {"model": {"grid": 5}} as a recipe has it."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(f"options is {options!r}, but must be a dictionary of recipe keys")
    try:
        return _nested(options)
    except RecursionError:
        raise InvalidInputError("options contains itself") from None


def _nested(options: Mapping[str, Any]) -> dict[str, Any]:
    recipe: dict[str, Any] = {}
    for key, value in options.items():
        if not isinstance(key, str):
            raise TypeError(f"options has the key {key!r}, but keys must be texts such as 'optimizer.lr'")
        if isinstance(value, Mapping):
            for inner, element in _nested(value).items():
                put(recipe, f"{key}.{inner}", element)
        else:
            put(recipe, key, value)
    return recipe


def merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with the values of `over`, which take precedence."""
    result = dict(base)
    for key, value in over.items():
        known = result.get(key)
        result[key] = merged(known, value) if isinstance(value, Mapping) and isinstance(known, dict) else value
    return result


def threads_of(n_jobs: int | None) -> int:
    """Threads for n_jobs of scikit-learn: None and -1 are one per core. The number never changes a bit."""
    if n_jobs is None or n_jobs == -1:
        return 0
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or int(n_jobs) < 1:
        raise InvalidInputError(f"n_jobs is {n_jobs!r}, but must be 1 or more, or -1 for all cores")
    return int(n_jobs)


def recipe_keys(family: str = "kan") -> list[dict[str, Any]]:
    """Every option of a family: key, type, default and meaning.

    >>> next(k["doc"] for k in recipe_keys("kan") if k["key"] == "model.degree")
    'Degree of the splines.'
    """
    if not isinstance(family, str):
        raise TypeError(f"family is {family!r}, but must be a text")
    keys: list[dict[str, Any]] = json_of(lib.gradloom_options, family.encode())
    return keys
