"""What `java -version` says."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


def java_major(version_text: str) -> int | None:
    """The major version in the answer of `java -version`; None when it holds none."""
    match = _VERSION.search(version_text)
    return None if match is None else int(match[1])
