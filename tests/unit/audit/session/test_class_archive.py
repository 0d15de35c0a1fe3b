"""The archive of Spark's classes that a session maps."""

import os
from pathlib import Path

import pytest

from mm2slo_audit.spark.spark_session import (
    JavaRuntime,
    class_archive_path,
    delete_other_archives,
    map_archive_options,
    write_archive_options,
)

JAVA = JavaRuntime("/usr/bin/java", 'openjdk version "17.0.19"')


def spark_package(folder: Path) -> Path:
    (folder / "jars").mkdir(parents=True)
    for name in ("spark-core.jar", "spark-sql.jar"):
        (folder / "jars" / name).write_bytes(name.encode())
    return folder


def test_class_archive_path_depends_on_java_spark_and_class_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    package = spark_package(tmp_path / "pyspark")
    first = class_archive_path(JAVA, package)
    assert first.parent == tmp_path / "cache" / "mm2slo"
    assert class_archive_path(JAVA, package) == first
    seen = {first, class_archive_path(JavaRuntime(JAVA.path, 'openjdk version "21.0.4"'), package)}
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    seen.add(class_archive_path(JAVA, package))
    monkeypatch.delenv("HADOOP_CONF_DIR")
    os.utime(package / "jars" / "spark-sql.jar", ns=(0, 0))
    seen.add(class_archive_path(JAVA, package))
    (package / "jars" / "plugin.jar").write_bytes(b"more")
    seen.add(class_archive_path(JAVA, package))
    assert len(seen) == 5


def test_map_archive_options_missing_archive_is_empty(tmp_path: Path) -> None:
    archive = tmp_path / "spark-0.jsa"
    assert map_archive_options(archive) == ""
    archive.write_bytes(b"classes")
    assert map_archive_options(archive) == f"-XX:SharedArchiveFile={archive} -Xlog:cds=off"
    assert write_archive_options(archive).startswith(f"-XX:ArchiveClassesAtExit={archive} ")


def test_delete_other_archives_keeps_only_given_archive(tmp_path: Path) -> None:
    for name in ("spark-0.jsa", "spark-1.jsa", "kafka-4.1.2"):
        (tmp_path / name).touch()
    delete_other_archives(tmp_path / "spark-1.jsa")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kafka-4.1.2", "spark-1.jsa"]
