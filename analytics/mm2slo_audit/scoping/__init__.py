"""What a run may judge, read from both clusters by the driver."""

from mm2slo_audit.scoping.clients import Clients, open_clients
from mm2slo_audit.scoping.scoping import Isolations, Scoping
from mm2slo_audit.scoping.take import take_scopes

__all__ = ["Clients", "Isolations", "Scoping", "open_clients", "take_scopes"]
