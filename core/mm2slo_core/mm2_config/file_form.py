"""Recognises a file of MirrorMaker 2's configuration by its content."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final


class FileForm(StrEnum):
    """What a file contains; the value is its key in `mm2:` of mm2slo.yaml."""

    PROPERTIES = "properties"
    STRIMZI = "strimzi"
    CONNECT = "connect"
    WORKER = "worker"


_PATTERNS: Final = {
    FileForm.STRIMZI: r"""(?:^|[-{,])\s*["']?apiVersion["']?\s*:""",
    FileForm.CONNECT: r"\A\s*[\[{]",
    FileForm.PROPERTIES: r"^[ \t]*clusters[ \t]*[=: \t]",
    FileForm.WORKER: r"^[ \t]*(?:group\.id|offset\.storage\.topic)[ \t]*[=: \t]",
}


def file_form(content: bytes) -> FileForm | None:
    """The form of a file, or None if it is none of them."""
    text = content.decode("utf-8", "replace").removeprefix("\ufeff")
    for form, pattern in _PATTERNS.items():
        if re.search(pattern, text, re.MULTILINE):
            return form
    return None
