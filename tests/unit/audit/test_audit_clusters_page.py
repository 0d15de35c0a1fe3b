"""docs/audit-clusters.md against the command, the configuration, the chart, and Spark's classes."""

import re
import shlex
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml
from typer.main import get_command

from mm2slo_audit.spark.spark_properties import PACKAGES
from mm2slo_cli.audit import audit_app
from mm2slo_core.config.flow_config import AuditConfig

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "audit-clusters.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
AUDIT = re.compile(r"mm2slo audit|\S+/__main__\.py")


def commands() -> Iterator[list[str]]:
    """The arguments of each command that starts an audit."""
    for kind, text in BLOCKS:
        for line in text.replace("\\\n", " ").splitlines() if kind == "sh" else ():
            if line.startswith(("mm2slo", "spark-submit")):
                yield shlex.split(AUDIT.sub("AUDIT", line))


def section(key: str) -> list[dict[str, Any]]:
    """The sections `audit:` of the page that have *key* in `spark`."""
    found = [yaml.safe_load(text)["audit"] for kind, text in BLOCKS if kind == "yaml"]
    return [each for each in found if key in each["spark"]]


@cache
def spark_classes() -> bytes:
    """The constants of Spark's classes."""
    parts = []
    for name in ("core", "launcher", "kubernetes", "yarn"):
        (jar,) = Path(pyspark.__file__).parent.glob(f"jars/spark-{name}_*.jar")
        with zipfile.ZipFile(jar) as opened:
            names = [each for each in opened.namelist() if each.endswith(".class")]
            parts += [opened.read(each) for each in names]
    return b"".join(parts)


def is_of_spark(name: str) -> bool:
    # The last part of some names is the user's: a variable or a Secret.
    prefix = re.sub(r"(Env|secrets)\.[\w-]+$", r"\1.", name)
    # serviceAccountName is added to a prefix.
    return prefix.removeprefix("spark.kubernetes.authenticate.driver.").encode() in spark_classes()


def test_options_of_audits_are_those_of_the_command() -> None:
    known = {option for each in get_command(audit_app).params for option in each.opts}
    used = [part for command in commands() for part in command[command.index("AUDIT") :]]
    options = {part for part in used if part.startswith("--")}
    assert {"--config", "--since", "--master", "--directory", "--spark-conf"} <= options
    assert options <= known


def test_options_and_properties_of_spark_exist() -> None:
    names = set(re.findall(r"\bspark\.[\w.-]+(?==)", PAGE))
    names |= {key for each in section("conf") for key in each["spark"]["conf"]}
    for command in commands():
        names.update(each for each in command[: command.index("AUDIT")] if each.startswith("--"))
    assert {"--num-executors", "spark.yarn.maxAppAttempts", "spark.cores.max"} <= names
    assert [each for each in sorted(names) if not is_of_spark(each)] == []
    assert not is_of_spark("spark.yarn.maxAttempts")


def test_configuration_is_valid_and_the_connector_is_tested() -> None:
    (own,) = section("conf")
    assert AuditConfig.model_validate(own).spark.master == own["spark"]["master"]
    assert set(re.findall(r"--packages (\S+)", PAGE)) <= set(PACKAGES.split(" or "))


def test_values_of_the_chart_exist() -> None:
    (used,) = section("executors")
    path = ROOT / "deploy" / "kubernetes" / "mm2slo" / "values.yaml"
    chart = yaml.safe_load(path.read_text(encoding="utf-8"))["audit"]
    assert used.keys() <= chart.keys()
    assert used["spark"].keys() <= chart["spark"].keys()


@pytest.mark.parametrize("millions", [10, 100, 1_000, 10_000])
def test_cores_follow_from_the_rate(millions: int) -> None:
    (rate,) = re.findall(r"\*\*([\d,]+) records per second and core\*\*", PAGE)
    records = 2 * millions * 1_000_000
    (row,) = re.findall(rf"^\| {millions:,} million \| (.*) \|$", PAGE, re.MULTILINE)
    size, hour, ten_minutes = row.split(" | ")
    seconds = records / int(rate.replace(",", ""))
    assert [int(hour), int(ten_minutes)] == [-(-seconds // 3600), -(-seconds // 600)]
    number, unit = size.split()
    assert float(number) * {"GB": 1e9, "TB": 1e12}[unit] == records * 300
