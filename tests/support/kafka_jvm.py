"""A Java process that has Kafka's own classes, called through py4j."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import py4j.java_gateway as java  # type: ignore[import-untyped]  # py4j ships no types
import pyspark

from mm2slo_core.local_environment import cache_folder
from mm2slo_lab.kafka_runtime import classpath, fetch_jars, find_java, resolved_version
from mm2slo_lab.lab_topology import DEFAULT_VERSION, Artifact, mirror_version


@contextmanager
def running_jvm(
    jars: str | None = None, options: Sequence[str] = (), stderr: TextIO | None = None
) -> Iterator[Any]:
    """Run a JVM with *jars* (default: Kafka, MirrorMaker 2); yields py4j's view of it."""
    (py4j_jar,) = Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")
    port, token, process = java.launch_gateway(
        jarpath=str(py4j_jar),
        classpath=jars or classpath(mirror_version(DEFAULT_VERSION)),
        javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options],
        redirect_stderr=stderr,
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    parameters = java.GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = java.JavaGateway(gateway_parameters=parameters)
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=20)


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
