"""Archive of Spark's classes: a run that maps it takes a quarter less time.

Dynamic application class-data sharing (JEP 350, Java 13 and newer): one JVM archives its loaded
classes at exit, later ones map them instead of loading and verifying 15,000 classes from jars. An
archive is valid for one build of Java with one class path; its name contains a hash of both.
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
# Spark's scripts prepend these to the class path.
_CLASS_PATH: Final = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")


def class_archive_path(java: Java, package: Path) -> Path:
    """Path of the archive of *java* and the Spark in *package*, in `cache_folder`."""
    known = hashlib.sha256(java.version.encode())
    for name in _CLASS_PATH:
        known.update(f"{name}={os.environ.get(name, '')}\n".encode())
    for jar in sorted((package / "jars").glob("*.jar")):
        status = jar.stat()
        # Java checks both before it uses an archive.
        known.update(f"{jar} {status.st_size} {status.st_mtime_ns}\n".encode())
    return cache_folder() / _PATTERN.replace("*", known.hexdigest()[:16])


def map_archive_options(archive: Path) -> str:
    """JVM options to map *archive*; empty if it does not exist.

    Java ignores an unusable archive; the log option suppresses its message.
    """
    return f"-XX:SharedArchiveFile={archive} -Xlog:cds=off" if archive.is_file() else ""


def write_archive_options(archive: Path) -> str:
    """JVM options to write *archive* at exit."""
    return f"-XX:ArchiveClassesAtExit={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"


def delete_other_archives(archive: Path) -> None:
    """Delete archives of other builds of Java and Spark beside *archive* (180 MB each)."""
    for other in archive.parent.glob(_PATTERN):
        if other != archive:
            other.unlink(missing_ok=True)
