"""`mm2:`, the files of MirrorMaker 2's own configuration."""

from collections.abc import Mapping

from pydantic import Field

from mm2slo_core.config.field_types import KafkaVersionText, Section, Text

Files = tuple[Text, ...]


class MirrorFilesConfig(Section):
    """MirrorMaker 2's own configuration: `clusters` and `flows` below those of this file."""

    properties: Files = ()
    """Properties files of dedicated mode."""
    strimzi: Files = ()
    """`KafkaMirrorMaker2` resources of Strimzi or IBM Event Streams."""
    connect: Files = ()
    """Connectors on Kafka Connect, as JSON."""
    worker: Text | None = None
    """Properties file of the Connect workers, for `connect`."""
    secrets: Text | None = None
    """Folder of Kubernetes secrets, with files `<secret>/<key>`."""
    paths: Mapping[Text, Text] = Field(default_factory=dict)
    """Where files and folders of MirrorMaker 2's machine are on this one."""
    kafka_version: KafkaVersionText | None = None
    """MirrorMaker 2's Kafka version, for its defaults; null: as in its files, or the newest."""
