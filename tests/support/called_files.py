"""The product's files that a piece of work calls."""

import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[2]


@cache
def product_file(name: str) -> str | None:
    """The path in the repository; None for tests, libraries, and code that is in no file."""
    path = Path(name)
    if not path.is_relative_to(ROOT):
        return None
    path = path.relative_to(ROOT)
    is_product = len(path.parts) > 1 and path.parts[1].startswith("mm2slo_")
    return str(path) if is_product else None


@contextmanager
def called_files() -> Iterator[dict[str, None]]:
    """Files in the order of their first call, in any thread that starts meanwhile."""
    files: dict[str, None] = {}

    def profile(frame: FrameType, event: str, _: object) -> None:
        # Bodies of modules and classes run at import: they have no optimized local variables.
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            file = product_file(frame.f_code.co_filename)
            if file is not None:
                files[file] = None

    # Not sys.settrace, which coverage needs; sys.monitoring only exists from Python 3.12 on.
    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield files
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
