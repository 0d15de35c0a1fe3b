"""Spark's classes, archived by Java: a run that maps them takes a quarter less time.

Dynamic application class-data sharing (JEP 350, Java 13 and newer): one JVM writes what it has
loaded when it ends, later ones map it instead of reading and verifying 15,000 classes from jars.
An archive is good for one build of Java with one class path, so that both are in its name.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Final

from mm2slo_core.user_folders import cache_folder

if TYPE_CHECKING:
    from pathlib import Path

    from mm2slo_audit.session.java_runtime import Java

_PATTERN: Final = "spark-*.jsa"
# Spark's scripts put these before its jars.
_CLASS_PATH: Final = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")


def archive_path(java: Java, package: Path) -> Path:
    """Where the archive of *java* and the Spark in *package* is, or would be.

    In `cache_folder`: it can be written again at any time.
    """
    known = hashlib.sha256(java.version.encode())
    for name in _CLASS_PATH:
        known.update(f"{name}={os.environ.get(name, '')}\n".encode())
    for jar in sorted((package / "jars").glob("*.jar")):
        status = jar.stat()
        # Java compares both before it trusts an archive.
        known.update(f"{jar} {status.st_size} {status.st_mtime_ns}\n".encode())
    return cache_folder() / _PATTERN.replace("*", known.hexdigest()[:16])


def map_archive_options(archive: Path) -> str:
    """Options of a JVM that maps *archive*; none where there is none.

    Java goes on without one that it cannot use; the log option keeps that off the terminal.
    """
    return f"-XX:SharedArchiveFile={archive} -Xlog:cds=off" if archive.is_file() else ""


def write_archive_options(archive: Path) -> str:
    """Options of a JVM that writes *archive* when it ends."""
    return f"-XX:ArchiveClassesAtExit={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"


def delete_other_archives(archive: Path) -> None:
    """Remove archives of other builds of Java and Spark beside *archive*: each has 180 MB."""
    for other in archive.parent.glob(_PATTERN):
        if other != archive:
            other.unlink(missing_ok=True)
