"""Progress of long work: tqdm where it is installed, else a line on a terminal."""
from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

Tell = Callable[[str, float, float], None]


class Progress:
    """Shows one bar at a time: (what, how much is done, of how much). Does nothing if the output is neither a terminal nor a notebook."""

    def __init__(self, show: bool) -> None:
        self._what = ""
        self._bar: Any = None
        self._width = 0
        self._tqdm: Any = None
        self._is_on = show and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        if self._is_on:
            try:
                self._tqdm = importlib.import_module("tqdm.auto").tqdm
            except ImportError:
                pass

    def __call__(self, what: str, done: float, of: float) -> None:
        if not self._is_on:
            return
        if self._tqdm is None:
            line = f"{what}: {done:.0f} of {of:.0f}" if of else what
            sys.stderr.write("\r" + line.ljust(self._width))
            sys.stderr.flush()
            self._width = len(line)
            return
        if self._bar is None or what != self._what:
            if self._bar is not None:
                self._bar.close()
            self._what, self._bar = what, self._tqdm(desc=what, total=of or None, leave=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
