"""Prometheus's metrics about itself."""

import urllib.request

from mm2slo_lab.lab_monitoring import Prometheus


def own_metrics(server: Prometheus, name: str) -> dict[str, float]:
    """Values of metric *name* by rule group, without its file; "" for other metrics."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as reply:
        lines = reply.read().decode().splitlines()
    found: dict[str, float] = {}
    for line in lines:
        key, _, value = line.rpartition(" ")
        if key == name or key.startswith(f"{name}{{"):
            group = key.partition('rule_group="')[2].partition('"')[0].rpartition(";")[2]
            found[group] = found.get(group, 0.0) + float(value)
    return found
