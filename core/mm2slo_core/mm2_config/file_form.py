"""Recognises the files of MirrorMaker 2's configuration by their content."""

from __future__ import annotations

import re
from enum import StrEnum


class FileForm(StrEnum):
    """What a file contains; the value is its key in `mm2:` of mm2slo.yaml."""

    STRIMZI = "strimzi"
    CONNECT = "connect"
    PROPERTIES = "properties"
    WORKER = "worker"


def file_form(content: bytes) -> FileForm | None:
    text = content.decode(errors="replace").removeprefix("\ufeff")
    patterns = {
        FileForm.STRIMZI: r"""(?:^|[-{,])\s*["']?apiVersion["']?\s*:""",
        FileForm.CONNECT: r"\A\s*[\[{]",
        FileForm.PROPERTIES: r"^[ \t]*clusters[ \t]*[=: \t]",
        FileForm.WORKER: r"^[ \t]*(?:group\.id|offset\.storage\.topic)[ \t]*[=: \t]",
    }
    found = (form for form, each in patterns.items() if re.search(each, text, re.MULTILINE))
    return next(found, None)
