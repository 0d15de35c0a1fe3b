"""IBM Event Streams: KafkaMirrorMaker2 of its API group, and the geo-replicator without flows."""

from pathlib import Path
from typing import Final

import pytest

from mm2slo_core.config.client_security import Mechanism, Protocol
from mm2slo_core.mm2_config.config_overlay import read_security
from mm2slo_core.mm2_config.mirror_setup import FindingSeverity, MirrorSetup
from mm2slo_core.mm2_config.provider_references import MirrorFiles, resolve_settings
from mm2slo_core.mm2_config.strimzi_setup import read_strimzi

FILES: Final = Path(__file__).parent / "strimzi_files"
REPLICATOR: Final = (FILES / "geo_replicator.yaml").read_text()


def read(text: str) -> MirrorSetup:
    (setup,) = read_strimzi("f", text)
    return setup


def test_read_strimzi_of_event_streams_has_flows_and_worker() -> None:
    setup = read((FILES / "event_streams.yaml").read_text())
    (flow,) = setup.flows
    assert (flow.flow.label, flow.worker.group_id, flow.worker.offsets_topic) == (
        *("london->paris-mm2connector", "georeplicator-workers"),
        "georeplicator-offsets",
    )
    assert [(connector.name, connector.origin.line) for connector in flow.connectors.values()] == [
        ("london->paris-mm2connector.MirrorSourceConnector", 42),
        ("london->paris-mm2connector.MirrorCheckpointConnector", 43),
    ]
    assert setup.findings == ()


def test_security_of_event_streams_is_the_user_token_with_the_api_key() -> None:
    setup = read((FILES / "event_streams.yaml").read_text())
    keys = {("london-api-key", "apikey"): b"s3cr3t"}
    files = MirrorFiles(
        environment=str, content=str.encode, secret=lambda name, key: keys[name, key]
    )
    client, unresolved = resolve_settings(setup.clusters["london"].client, setup.providers, files)
    security, findings = read_security(client, files)
    assert security is not None
    assert security.sasl is not None
    assert security.sasl.password is not None
    assert (security.protocol, security.sasl.mechanism, security.sasl.username) == (
        *(Protocol.SASL_SSL, Mechanism.PLAIN),
        "token",
    )
    assert security.sasl.password.reveal() == "s3cr3t"
    assert (unresolved, findings) == ((), ())


@pytest.mark.parametrize(
    ("text", "resource"),
    [
        (REPLICATOR, " paris -n integration"),
        (REPLICATOR.replace("  namespace: integration\n", ""), " paris"),
        (REPLICATOR.replace("integration", "'a; b'"), " paris -n 'a; b'"),
        (REPLICATOR.replace("  name: paris\n", ""), " -n integration"),
        ("kind: EventStreamsGeoReplicator\n", ""),
    ],
)
def test_read_strimzi_of_a_geo_replicator_alone_names_the_command_to_run(
    text: str, resource: str
) -> None:
    setup = read(text)
    (finding,) = setup.findings
    assert (finding.severity, finding.check) == (FindingSeverity.ERROR, "geo-replicator")
    assert (finding.what, finding.action) == (
        "an EventStreamsGeoReplicator has no flows",
        f"pass the output of: oc get kafkamirrormaker2.eventstreams.ibm.com{resource} -o yaml",
    )
    assert setup.flows == ()
