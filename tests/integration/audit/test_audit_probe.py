"""`mm2slo audit probe` on topics with transformed copies."""

import os
from dataclasses import replace

import pytest
from audit_scenario.record_contents import keyed, now
from fault_injection import write

from mm2slo_audit.record_probe import probe
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.audit.transformation_probe import suggest_identity
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.user_errors import UserError
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]

TOPIC = f"probed-{os.getpid()}"


@pytest.fixture(scope="module")
def config(lab: Lab) -> Config:
    """A flow of another engine that masks values and adds a header; 100 records have no copy."""
    start = now() - 60_000
    contents = [
        replace(content, timestamp=start + number // 3)
        for number, (_, content) in enumerate(keyed(1, 900, keys=50))
    ]
    sent = [(number % 2, content) for number, content in enumerate(contents)]
    copied = [
        (partition, replace(content, value=b"***", headers=(*content.headers, ("trace", b"x"))))
        for partition, content in sent[:800]
    ]
    for alias, records in (("us", sent), ("eu", copied)):
        lab.cluster(alias).admin.create_topic(TOPIC, 2)
        write(lab.cluster(alias).librdkafka(), TOPIC, records)
    us, eu = (lab.cluster(alias).bootstrap_servers for alias in ("us", "eu"))
    return load_config(
        f"""
        clusters: {{us: {{bootstrap_servers: "{us}"}}, eu: {{bootstrap_servers: "{eu}"}}}}
        flows: [{{flow: us->eu, engine: other, topics: [{TOPIC}]}}]
        """
    )


def test_probe_finds_changed_value_and_added_header(config: Config) -> None:
    (found,), not_compared = probe(config, [], [TOPIC], records=600)
    assert not_compared == ()
    assert (found.source_topic, found.target_topic) == (TOPIC, TOPIC)
    assert found.found.compared == 600
    assert (found.found.value, found.found.key, found.found.timestamp) == (600, 0, 0)
    assert found.found.header_names == {"trace": 600}
    assert suggest_identity(found.found) == Identity(value=False, ignored_headers=("trace",))


def test_probe_of_unreplicated_topic_raises_user_error(config: Config) -> None:
    with pytest.raises(UserError, match="topic 'nowhere' is not copied by these flows"):
        probe(config, [], ["nowhere"])
