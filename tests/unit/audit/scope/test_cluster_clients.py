"""Clients of the clusters that an audit needs."""

import pytest

from mm2slo_audit.scope.cluster_readings import open_clients
from mm2slo_core.config.config_loader import load_config
from mm2slo_kafka.kafka_errors import KafkaOperationError

CONFIG = """\
clusters:
  us: {bootstrap_servers: "127.0.0.1:1"}
  eu: {bootstrap_servers: "127.0.0.1:1"}
  ap:
    bootstrap_servers: "127.0.0.1:1"
    security: {protocol: SSL, tls: {ca_file: /no/such/file.pem}}
flows:
  - {flow: us->eu}
  - {flow: us->ap}
"""


def test_cluster_that_cannot_be_used_fails_only_those_that_need_it() -> None:
    with open_clients(load_config(CONFIG)) as clients:
        assert clients["us"] is clients["us"]
        assert clients["eu"].alias == "eu"
        with pytest.raises(KafkaOperationError, match=r"on cluster ap .*security\.tls\.ca_file"):
            clients["ap"]
        assert set(clients) == {"us", "eu"}
