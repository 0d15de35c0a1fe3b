"""The log file that a service writes beside its standard output, for log shippers."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from mm2slo_core.json_logs import JsonFormatter
from mm2slo_core.user_errors import UserError

_VARIABLE: Final = "MM2SLO_LOG_FOLDER"
_MAX_BYTES: Final = 10_000_000
_OLD_FILES: Final = 5


def log_to_file(service: str) -> None:
    """Also write JSON lines to `<service>.log` in the folder MM2SLO_LOG_FOLDER, if that is set.

    Raises UserError.
    """
    folder = os.environ.get(_VARIABLE)
    if not folder:
        return
    path = Path(folder) / f"{service}.log"
    try:
        handler = RotatingFileHandler(
            path, maxBytes=_MAX_BYTES, backupCount=_OLD_FILES, encoding="utf-8"
        )
    except OSError as error:
        raise UserError(
            f"cannot write the log file {str(path)!r}: {error.strerror}; expected {_VARIABLE} to "
            "be a folder that this user may write to"
        ) from None
    handler.setFormatter(JsonFormatter(service))
    logging.getLogger().addHandler(handler)
