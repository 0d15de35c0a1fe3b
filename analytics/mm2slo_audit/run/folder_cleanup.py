"""Removes folders of landed records on any path that Spark can write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_audit.ingestion.run_folders import file_system, run_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mm2slo_core.audit.audit_scope import Window


def absolute(spark: SparkSession, directory: str) -> str:
    """*directory* as a URL: the store's paths must lead there from wherever the next run starts."""
    files, path = file_system(spark, directory)
    return str(files.makeQualified(path(directory)).toString()).rstrip("/")


def delete_landed_run(spark: SparkSession, directory: str, run_id: str, window: Window) -> None:
    """Delete all that a run landed below *directory*; nothing when it landed nothing."""
    pattern = run_folder(directory, "*", window, run_id)
    files, path = file_system(spark, directory)
    for status in files.globStatus(path(pattern)) or ():
        delete(spark, status.getPath().toString())


def delete(spark: SparkSession, folder: str) -> None:
    """Delete a run's folder, and those of its window and flows when nothing else is in them."""
    files, path = file_system(spark, folder)
    place = path(folder)
    files.delete(place, True)
    for parent in (place.getParent(), place.getParent().getParent()):
        ours = parent.getName().startswith(("window=", "flow="))
        if not ours or not files.exists(parent) or len(files.listStatus(parent)):
            return
        files.delete(parent, False)
