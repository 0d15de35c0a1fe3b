"""Folders of landed records, on any path that Spark can write.

`<directory>/flow=<slugs>/window=<start>-<end>/run=<id>/` has records/ (Parquet) and, written last,
`manifest.json`: without it the run did not complete.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.audit.audit_scope import UnitScope, Window
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SCHEMA_VERSION: Final = 3
_MANIFEST: Final = "manifest.json"


def run_folder(directory: str, portion: str, window: Window, run: str) -> str:
    """The folder of a run and one portion (see `group_by_flows`)."""
    return f"{directory.rstrip('/')}/flow={portion}/window={window.start}-{window.end}/run={run}"


@dataclass(frozen=True, slots=True)
class RunManifest:
    """Contents of a folder."""

    run: str
    rows: int
    offsets: int
    """Offsets read on both sides; an upper bound of the records."""
    sample: float
    salt: int
    units: tuple[dict[str, Any], ...]
    """Summaries of the scopes."""
    schema_version: int = SCHEMA_VERSION


def describe_scope(scope: UnitScope) -> dict[str, Any]:
    """Summary of a scope: offsets, never keys."""
    return {
        "index": scope.index,
        "target_topic": scope.target_topic,
        "window": [scope.window.start, scope.window.end],
        "comparison": scope.comparison.value,
        "taken_at": scope.taken_at,
        "max_pending": scope.max_pending,
        "flows": [
            {
                "flow": flow.flow.label,
                "source_topic": flow.source_topic,
                "partitions": [asdict(each) for each in flow.partitions],
            }
            for flow in scope.flows
        ],
        "partitions": [asdict(each) for each in scope.partitions],
    }


def write_manifest(spark: SparkSession, folder: str, manifest: RunManifest) -> None:
    """Write the manifest atomically: under another name, then renamed."""
    files, path = file_system(spark, folder)
    whole, part = path(f"{folder}/{_MANIFEST}"), path(f"{folder}/_{_MANIFEST}.part")
    stream = files.create(part, True)
    try:
        stream.write(bytearray(json.dumps(asdict(manifest)).encode()))
    finally:
        stream.close()
    files.delete(whole, False)
    if not files.rename(part, whole):
        raise OSError(f"cannot rename the manifest to {folder}/{_MANIFEST}")


def make_folder(spark: SparkSession, folder: str) -> None:
    """Create a folder and its parents. Raises UserError if Spark's user is not allowed to."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    try:
        files, path = file_system(spark, folder)
        made = bool(files.mkdirs(path(folder)))
    except Py4JJavaError as error:
        made, reason = False, str(error.java_exception.getMessage())
    else:
        reason = "permission denied, or not a directory"
    if not made:
        raise UserError(
            f"{folder} is not writable ({reason}): set audit.directory to a writable path that"
            " every executor can reach"
        )


def delete_folder(spark: SparkSession, folder: str) -> None:
    """Delete a folder recursively; no error if it does not exist."""
    files, path = file_system(spark, folder)
    files.delete(path(folder), True)


def file_system(spark: SparkSession, folder: str) -> tuple[Any, Any]:
    """Hadoop's file system of *folder*, and its path class."""
    jvm: Any = spark.sparkContext._jvm
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    path = jvm.org.apache.hadoop.fs.Path
    return path(folder).getFileSystem(configuration), path


def absolute_url(spark: SparkSession, directory: str) -> str:
    """*directory* as an absolute URL, valid whatever the working directory of the next run is."""
    files, path = file_system(spark, directory)
    return str(files.makeQualified(path(directory)).toString()).rstrip("/")


def delete_landed_run(spark: SparkSession, directory: str, run_id: str, window: Window) -> None:
    """Delete all records that a run landed below *directory*."""
    pattern = run_folder(directory, "*", window, run_id)
    files, path = file_system(spark, directory)
    for status in files.globStatus(path(pattern)) or ():
        delete_run_folder(spark, status.getPath().toString())


def delete_run_folder(spark: SparkSession, folder: str) -> None:
    """Delete a run's folder, and the folders of its window and flows if they are empty."""
    files, path = file_system(spark, folder)
    target = path(folder)
    files.delete(target, True)
    for parent in (target.getParent(), target.getParent().getParent()):
        ours = parent.getName().startswith(("window=", "flow="))
        if not ours or not files.exists(parent) or len(files.listStatus(parent)):
            return
        files.delete(parent, False)
