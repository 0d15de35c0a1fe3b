"""The anchors of event actions are in the classes that log them, for each supported Kafka."""

import zipfile

import pytest

from mm2slo_lab.kafka_runtime import jar_paths
from mm2slo_lab.lab_topology import DEFAULT_VERSION, mirror_version
from mm2slo_logship.event_actions import EVENT_ACTIONS

MIRROR = mirror_version(DEFAULT_VERSION)
_JARS = ("connect-mirror-", "connect-runtime-", "kafka-clients-")


@pytest.mark.parametrize(
    "version",
    [MIRROR, *(pytest.param(each, marks=pytest.mark.long) for each in ("4.1.x", "3.9.x"))],
)
def test_anchors_are_in_the_classes_of_kafka(version: str) -> None:
    classes: dict[str, bytes] = {}
    for jar in jar_paths(version):
        if jar.name.startswith(_JARS) and "client-" not in jar.name.removeprefix("connect-mirror-"):
            with zipfile.ZipFile(jar) as archive:
                for name in archive.namelist():
                    if name.endswith(".class"):
                        simple = name.rpartition("/")[2].removesuffix(".class").partition("$")[0]
                        classes[simple] = classes.get(simple, b"") + archive.read(name)

    missing = {
        (action.name, action.anchor)
        for action in EVENT_ACTIONS
        if not any(
            action.anchor.encode() in classes.get(logger, b"") for logger in action.loggers.split()
        )
    }
    assert missing == set()
