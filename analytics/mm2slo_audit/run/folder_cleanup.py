"""Deletes folders of landed records on any path that Spark can write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_audit.ingestion.run_folders import file_system, run_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mm2slo_core.audit.audit_scope import Window


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
