"""The audit run by `spark-submit`, with its master, jars and memory, and the same exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from audit_scenario.audit_process import FAST_SPARK
from audit_scenario.flow_waits import wait_all_committed, wait_copied
from audit_scenario.record_contents import keyed
from audit_scenario.scenario_steps import US_EU
from fault_injection import Injector

import mm2slo_audit
from mm2slo_audit.spark.spark_properties import SparkOptions, connector_properties
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]


def run_spark_submit(folder: Path, config: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the audit with `spark-submit`, which gets master, jars and memory."""
    folder.mkdir()
    (folder / "mm2slo.yaml").write_text(config, encoding="utf-8")
    conf = {**connector_properties(SparkOptions()), **FAST_SPARK, "spark.driver.memory": "1g"}
    return subprocess.run(
        [
            str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
            *("--master", "local[2]"),
            *(part for each in conf.items() for part in ("--conf", "=".join(each))),
            str(Path(mm2slo_audit.__file__).with_name("__main__.py")),
            *("--config", str(folder / "mm2slo.yaml"), "--report", str(folder / "report.json")),
            *("--store", f"sqlite:///{folder}/store.db", "--directory", str(folder / "records")),
            *options,
        ],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def test_submitted_audit_with_overdue_records_exits_with_1(
    lab: Lab, fresh_topic: str, tmp_path: Path
) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    us.admin.create_topic(fresh_topic, 2)
    copy = f"us.{fresh_topic}"
    injector = Injector(us.librdkafka(), eu.librdkafka(), fresh_topic, copy)
    injector.plain(keyed(2, 500))
    wait_copied(lab, US_EU, copy, injector.copied)
    wait_all_committed(lab, US_EU, fresh_topic)
    chosen = ("--since", "1h", "--sample", "100%", "--max-pending", "1ms")
    lab.mm2.stop()
    try:
        injector.plain(keyed(2, 6, first=500))
        folder = tmp_path / "overdue"
        found = run_spark_submit(folder, lab.config_yaml(), *chosen, "--topic", fresh_topic)
    finally:
        lab.mm2.start()

    assert found.returncode == 1, found.stdout
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    (topic,) = [each for each in report["topics"] if each["not_audited"] is None]
    counts = {verdict: n for verdict, n in topic["counts"].items() if n}
    assert counts == {Verdict.MATCHED: 500, Verdict.OVERDUE: 6}
    assert "faults: 6 overdue; 500 matched" in found.stdout

    refused = run_spark_submit(tmp_path / "no", lab.config_yaml(), *chosen, "--topic", "nowhere")
    assert refused.returncode == 2
    assert "topic 'nowhere' is not copied by these flows" in refused.stdout
    assert "Traceback" not in refused.stdout
