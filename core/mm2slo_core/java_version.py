"""The Java version in the output of `java -version`."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


def java_major(version_text: str) -> int | None:
    """Return the major version in the output of `java -version`; None without one."""
    match = _VERSION.search(version_text)
    return None if match is None else int(match[1])
