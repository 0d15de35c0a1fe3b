"""Folders of landed records on any path that Spark can write, and what each of them holds.

`<directory>/flow=<slugs>/window=<start>-<end>/run=<id>/` has records/ and polls/ (Parquet) and,
written last, `manifest.json`: a folder without it is of a run that did not end.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mm2slo_core.audit.audit_scope import UnitScope, Window

SCHEMA_VERSION: Final = 1
_MANIFEST: Final = "manifest.json"


def run_folder(directory: str, portion: str, window: Window, run: str) -> str:
    """Where a run lands the records of one portion."""
    return f"{directory.rstrip('/')}/flow={portion}/window={window.start}-{window.end}/run={run}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder holds."""

    run: str
    rows: int
    offsets: int
    """That were read, on both sides: the records at most."""
    sample: float
    salt: int
    units: tuple[dict[str, Any], ...]
    """A summary of each scope."""
    schema_version: int = SCHEMA_VERSION


def describe(scope: UnitScope) -> dict[str, Any]:
    """A scope for the manifest: offsets, never keys."""
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


def write_manifest(spark: SparkSession, folder: str, manifest: Manifest) -> None:
    """Write it under another name and rename it, so that it is whole or not there."""
    files, path = file_system(spark, folder)
    whole, part = path(f"{folder}/{_MANIFEST}"), path(f"{folder}/_{_MANIFEST}.part")
    stream = files.create(part, True)
    try:
        stream.write(bytearray(json.dumps(asdict(manifest)).encode()))
    finally:
        stream.close()
    files.delete(whole, False)
    if not files.rename(part, whole):
        raise OSError(f"{folder}/{_MANIFEST} could not be renamed to")


def read_manifest(spark: SparkSession, folder: str) -> Manifest:
    """Read it back.

    Raises UserError when it is missing, damaged or of a newer version.
    """
    advice = "audit the window again, which replaces it"
    files, path = file_system(spark, folder)
    where = path(f"{folder}/{_MANIFEST}")
    if not files.exists(where):
        raise UserError(
            f"{folder} holds no {_MANIFEST}: the run that wrote it did not end; {advice}"
        )
    size = files.getFileStatus(where).getLen()
    stream = files.open(where)
    try:
        text = bytes(stream.readNBytes(size))
    finally:
        stream.close()
    try:
        found = json.loads(text)
        version = found["schema_version"]
        manifest = Manifest(**{**found, "units": tuple(found["units"])})
    except (ValueError, TypeError, KeyError):
        raise UserError(f"{folder}/{_MANIFEST} is damaged; {advice}") from None
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{folder}/{_MANIFEST} has the schema version {version}, and this mm2slo reads"
            f" {SCHEMA_VERSION}; {advice}"
        )
    return manifest


def make_folder(spark: SparkSession, folder: str) -> None:
    """Create a folder and those above it.

    Raises UserError when Spark's user may not.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    try:
        files, path = file_system(spark, folder)
        made = bool(files.mkdirs(path(folder)))
    except Py4JJavaError as error:
        made, reason = False, str(error.java_exception.getMessage())
    else:
        reason = "permission denied, or no directory"
    if not made:
        raise UserError(
            f"{folder} cannot be written ({reason}): name a writable audit.directory, on a path"
            " that every executor reaches as well"
        )


def delete_folder(spark: SparkSession, folder: str) -> None:
    """Remove a folder and all in it; nothing happens when it does not exist."""
    files, path = file_system(spark, folder)
    files.delete(path(folder), True)


def file_system(spark: SparkSession, folder: str) -> tuple[Any, Any]:
    """Hadoop's file system of *folder*, and its class of paths: whatever Spark can write."""
    jvm: Any = spark.sparkContext._jvm
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    path = jvm.org.apache.hadoop.fs.Path
    return path(folder).getFileSystem(configuration), path
