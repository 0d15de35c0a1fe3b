"""Garbage collection while modules are imported."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_gc() -> Iterator[None]:
    """Import without garbage collection.

    Imports allocate hundreds of thousands of objects and free few; collections took a tenth of the
    startup time of the report service. `gc.freeze` excludes these objects from later collections.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
