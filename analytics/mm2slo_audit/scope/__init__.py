"""Scopes of a run: what it may judge, read from both clusters by the driver."""

from mm2slo_audit.scope.cluster_clients import Clients, open_clients
from mm2slo_audit.scope.kafka_scopes import Isolations, KafkaScopes
from mm2slo_audit.scope.scope_reader import read_scopes

__all__ = ["Clients", "Isolations", "KafkaScopes", "open_clients", "read_scopes"]
