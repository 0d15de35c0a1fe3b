"""The jar of Kafka Streams, which the lab does not need: downloaded once per user."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from mm2slo_core.user_folders import cache_folder
from mm2slo_lab import ivy
from mm2slo_lab.java_lookup import find_java
from mm2slo_lab.kafka_jars import _ivy_jar, resolved_version
from mm2slo_lab.kafka_versions import Artifact


def streams_jar(version: str) -> Path:
    """The jar for brokers of *version*; a stateless topology needs no other jar beside Kafka's."""
    exact = resolved_version(version)
    jar = cache_folder() / f"kafka-streams-{exact}.jar"
    if not jar.exists():
        with tempfile.TemporaryDirectory(prefix="kafka-streams-", dir=cache_folder()) as staging:
            module, target = Path(staging, "ivy.xml"), Path(staging, "jars")
            found = (Artifact("org.apache.kafka", "kafka-streams", exact),)
            module.write_text(ivy.render_module(found), encoding="utf-8")
            command = ivy.command(
                java=find_java(17),
                ivy_jar=_ivy_jar(),
                module=module,
                cache=Path(staging, "ivy"),
                target=target,
                settings=None,
            )
            subprocess.run(command, check=True, capture_output=True)
            (target / jar.name).rename(jar)
    return jar
