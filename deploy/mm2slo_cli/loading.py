"""Loads modules without looking for garbage among them."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def loading() -> Iterator[None]:
    """For imports: they make hundreds of thousands of objects, and free next to none.

    Collecting meanwhile took a tenth of the start of the report service. What was loaded lasts, so
    that no later collection looks at it either (`gc.freeze`).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
