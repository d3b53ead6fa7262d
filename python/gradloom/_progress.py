"""What is shown while something trains: a bar of tqdm where that is installed, else one line on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ._library import LongCall


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    current = shell.get_ipython()
    return current is not None and type(current).__name__ == "ZMQInteractiveShell"


def _is_watched() -> bool:
    """Whether progress is visible."""
    return _in_notebook() or bool(getattr(sys.stderr, "isatty", bool)())


class Progress:
    """Takes what the engine tells after each epoch. `verbose` None: show it on a terminal or in a notebook."""

    def __init__(self, verbose: bool | int | None = None) -> None:
        self.shown = _is_watched() if verbose is None else bool(verbose)
        self._bar: Any = None
        self._stage = -1

    def __call__(self, line: dict[str, Any]) -> None:
        total, done = int(line.get("epochs", line.get("total", 0))), int(line.get("epoch", line.get("done", 0)))
        stage = int(line.get("stage", 0))
        if stage != self._stage:
            self.close()
            self._stage = stage
        loss, validation = line.get("loss"), line.get("validation")
        text = "" if loss is None else f"loss {loss:.4g}"
        text += "" if validation is None else f", validation {validation:.4g}"
        bar = self._open(total, str(line.get("note", "")))
        if bar is None:
            end = "\n" if done >= total else ""
            sys.stderr.write(f"\r\x1b[K{line.get('note', '')} {done} of {total}  {text}{end}")
            sys.stderr.flush()
            return
        bar.n = done
        bar.set_postfix_str(text, refresh=False)
        bar.refresh()

    def _open(self, total: int, note: str) -> Any:
        if self._bar is None:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return None
            self._bar = tqdm(total=total, desc=note or None, leave=True)
        return self._bar

    def close(self) -> None:
        """Ends the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class WatchedCall(LongCall):
    """A LongCall whose progress goes to a bar and to a callback of the user, who stops it by returning True."""

    def __init__(
        self, verbose: bool | int | None = None, callback: Callable[[dict[str, Any]], object] | None = None
    ) -> None:
        self._bar = Progress(verbose)
        self._callback = callback
        super().__init__(self._told if self._bar.shown or callback is not None else None)

    def _told(self, line: dict[str, Any]) -> object:
        if self._bar.shown:
            self._bar(line)
        return self._callback(line) if self._callback is not None else None

    def run(self, function: Callable[..., int], *arguments: Any) -> None:
        """As LongCall.run; ends the bar too."""
        try:
            super().run(function, *arguments)
        finally:
            self._bar.close()
