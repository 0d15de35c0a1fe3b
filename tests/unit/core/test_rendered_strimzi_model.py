"""Strimzi's own Java model reads rendered resources, and names the fields that it does not know."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml
from generated_mirror_setups import EXAMPLE
from kafka_jvm import running_jvm
from py4j.java_collections import JavaList  # type: ignore[import-untyped]  # no types
from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]

from mm2slo_core.mm2_config.mm2_properties import read_properties
from mm2slo_core.mm2_config.rendered_setup import render_kafka_users, render_strimzi
from mm2slo_lab import kafka_runtime
from mm2slo_lab.kafka_runtime import find_java
from mm2slo_lab.lab_topology import Artifact

MODEL = "io.strimzi.api.kafka.model"


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("strimzi")
    module = folder / "ivy.xml"
    module.write_text(kafka_runtime.render_ivy_module([Artifact("io.strimzi", "api", "0.49.1")]))
    settings = os.environ.get("MM2SLO_IVY_SETTINGS")
    (jar,) = Path(pyspark.__file__).parent.glob("jars/ivy-*.jar")
    command = kafka_runtime.render_ivy_command(
        java=find_java(17),
        ivy_jar=jar,
        module=module,
        cache=folder / "cache",
        target=folder / "jars",
        settings=Path(settings) if settings else None,
    )
    subprocess.run(command, check=True, capture_output=True)
    with running_jvm(os.pathsep.join(map(str, folder.glob("jars/*.jar")))) as running:
        yield running


def unknown_fields(value: Any) -> list[str]:
    """The names of fields that Strimzi's classes do not have."""
    if isinstance(value, JavaList):
        return [field for each in value for field in unknown_fields(each)]
    kind = value.getClass() if isinstance(value, JavaObject) else None
    if kind is None or not kind.getName().startswith(MODEL) or kind.isEnum():
        return []
    found = list(value.getAdditionalProperties() or ())
    for name in {
        method.getName() for method in kind.getMethods() if not method.getParameterCount()
    }:
        if name.startswith("get") and name not in {"getClass", "getAdditionalProperties"}:
            found += unknown_fields(getattr(value, name)())
    return found


@pytest.mark.long
@pytest.mark.spark
def test_rendered_resources_have_only_fields_of_strimzi(jvm: Any) -> None:
    setups = [read_properties("mm2.properties", EXAMPLE)]
    resources, _ = render_strimzi(setups)
    users, _ = render_kafka_users(setups, {"User:mm2": ["mirrormaker2", "exporter", "audit"]})
    mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()
    for text in (*resources.values(), *users.values()):
        document = yaml.safe_load(text)
        kind = document["kind"]
        package = f"{MODEL}.{kind.removeprefix('Kafka').lower()}"
        target = jvm.java.lang.Class.forName(f"{package}.{kind}")
        assert unknown_fields(mapper.readValue(json.dumps(document), target)) == []
        document["spec"]["speck"] = {}
        assert unknown_fields(mapper.readValue(json.dumps(document), target)) == ["speck"]
