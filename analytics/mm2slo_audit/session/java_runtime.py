"""The Java runtime of Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mm2slo_core.java_version import java_major
from mm2slo_core.user_errors import UserError

MINIMUM: Final = 17
"""Required by Spark 4."""
_INSTALL: Final = (
    "install Java 17 or 21 (Debian and Ubuntu: apt-get install openjdk-17-jre-headless)"
    " or set JAVA_HOME to one"
)


@dataclass(frozen=True, slots=True)
class Java:
    path: str
    version: str
    """Output of `java -version`: release, build and vendor."""


def require_java() -> Java:
    """The `java` that Spark's scripts run: from JAVA_HOME, else from the PATH.

    Raises UserError if it is missing or too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).is_file():
        where = f"JAVA_HOME ({home})" if home else "the PATH"
        raise UserError(f"Spark needs Java {MINIMUM} or newer; found none in {where}: {_INSTALL}")
    version = _version_text(java)
    major = java_major(version)
    if major is None or major < MINIMUM:
        found = "an unknown version" if major is None else f"version {major}"
        raise UserError(f"Spark needs Java {MINIMUM} or newer; {java} is {found}: {_INSTALL}")
    return Java(java, version)


def _version_text(java: str) -> str:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr + answer.stdout
