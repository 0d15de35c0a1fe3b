"""Lands topics of a lab in a separate process, since Spark keeps one JVM per process.

`landed_topics.py CONFIG DIRECTORY SAMPLE START END FLOW TOPIC...` prints the result as JSON.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from mm2slo_audit.scope.cluster_readings import open_clients
from mm2slo_audit.scope.scope_reader import read_scopes
from mm2slo_audit.spark.landed_records import land_records
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_audit.spark.spark_session import spark_session
from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.config.config_loader import load_config


def land_in_child(
    config: str, directory: Path, window: Window, flow: str, *topics: str, sample: float = 1.0
) -> dict[str, Any]:
    """The output of `main`. Raises AssertionError with its errors."""
    file = directory / "mm2slo.yaml"
    file.write_text(config, encoding="utf-8")
    command = [
        sys.executable, __file__, str(file), str(directory / "landed"), str(sample),
        str(window.start), str(window.end), flow, *topics,
    ]  # fmt: skip
    answer = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def main() -> None:
    """Land the topics, count records, and print the result."""
    from pyspark.sql import functions as F

    file, directory, sample, start, end, flow, *topics = sys.argv[1:]
    config = load_config(Path(file).read_text(encoding="utf-8"))
    progress: list[int] = []
    options = SparkOptions(master="local[2]", driver_memory="1g")
    with spark_session(options) as spark, open_clients(config) as clients:
        scoped = read_scopes(config, [flow], topics, Window(int(start), int(end)), clients)
        landed = land_records(
            spark, scoped, config, Sample(float(sample)), directory,
            run="r1", clients=clients, on_read=progress.append,
        )  # fmt: skip
        grouped = landed.records.groupBy("topic", "side", "partition", "ts", "fp")
        counted = grouped.agg(F.count("*").alias("n")).groupBy("topic", "side")
        sums = counted.agg(F.sum("n"), F.count("*")).orderBy("topic", "side").collect()
        both = landed.records.groupBy("topic", "partition", "ts", "fp").agg(
            F.sum(F.when(F.col("side") == 0, 1).otherwise(-1)).alias("balance")
        )
        unbalanced = both.where("balance <> 0").count()
    folders = [Path(path) for path in sorted({each.path for each in landed.directories.values()})]
    manifests = [json.loads((each / "manifest.json").read_bytes()) for each in folders]
    answer = {
        "rows": landed.rows,
        "offsets": landed.offsets,
        "sides": [list(row) for row in sums],
        "unbalanced": unbalanced,
        "failed": {each.target_topic: each.detail for each in landed.failed},
        "not_audited": [each.reason for each in scoped.not_audited],
        "folders": [each.relative_to(directory).as_posix() for each in folders],
        "manifests": [[each["run"], each["rows"], each["offsets"]] for each in manifests],
        "progress": [progress[-1], scoped.planned],
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
