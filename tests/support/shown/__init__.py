"""What the dashboards show of a lab: their queries, asked of a real Prometheus as Grafana does."""

from shown.asking import Shown, soon
from shown.faults import NAMED, named_in, shows
from shown.looking import FLOW, looked_at
from shown.moving import Moving
from shown.running import running

__all__ = ["FLOW", "NAMED", "Moving", "Shown", "looked_at", "named_in", "running", "shows", "soon"]
