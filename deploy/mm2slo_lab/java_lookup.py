"""Finds the Java runtime of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from mm2slo_core.java_version import java_major
from mm2slo_lab.lab_errors import JavaMissingError

_INSTALL = "install Java 17 or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless)"


def find_java(minimum: int) -> str:
    """Return the path of `java` in JAVA_HOME or on PATH.

    Raises JavaMissingError when it is missing or older than *minimum*.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).is_file():
        where = f"JAVA_HOME ({home})" if home else "PATH"
        raise JavaMissingError(f"java not found in {where}: {_INSTALL}")
    result = subprocess.run(
        [java, "-version"], capture_output=True, text=True, timeout=30, check=False
    )
    major = java_major(result.stderr)
    if major is None or major < minimum:
        found = "an unknown version" if major is None else f"version {major}"
        raise JavaMissingError(f"{java} is {found}, this Kafka requires {minimum}: {_INSTALL}")
    return java
