"""The jar of Kafka Streams, which the lab does not need: downloaded once per user."""

import tempfile
from pathlib import Path

from mm2slo_core.local_environment import cache_folder
from mm2slo_lab.kafka_runtime import fetch_jars, find_java, resolved_version
from mm2slo_lab.lab_topology import Artifact


def streams_jar(version: str) -> Path:
    """The jar for brokers of *version*; a stateless topology needs no other jar beside Kafka's."""
    exact = resolved_version(version)
    jar = cache_folder() / f"kafka-streams-{exact}.jar"
    if not jar.exists():
        with tempfile.TemporaryDirectory(prefix="kafka-streams-", dir=cache_folder()) as staging:
            found = (Artifact("org.apache.kafka", "kafka-streams", exact),)
            target = fetch_jars(find_java(17), found, Path(staging))
            (target / jar.name).rename(jar)
    return jar
