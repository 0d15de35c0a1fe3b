#!/usr/bin/env bash
# Prometheus: after a restart, an alert with a short `for` is pending again, and a kept one is gone.
#
# Version: Prometheus 2.42.0; needs it, or a newer one, in the path (Debian 12: `apt-get install
# prometheus`), curl and Python 3.
#
# Expected: Prometheus stores since when an alert is active (ALERTS_FOR_STATE), and restores it after a
# restart, so that an alert which has fired fires again at once. `keep_firing_for` holds an alert
# against short gaps, of which a restart is one.
#
# What happens: rules whose `for` is below `--rules.alert.for-grace-period`, by default 10m, are left
# out: their firing alerts are pending again for the whole of `for`. Alertmanager is not notified, and
# ends an alert that is not sent again after four minutes: a page with `for: 5m` is called resolved in
# the middle of the outage, and is new a minute later. With a grace period that is shorter than `for`
# the alert fires from the first evaluation after the restoration on. That an alert is kept is stored
# nowhere, so it ends with the process whatever the options are.
#
# Source: prometheus/prometheus, rules/group.go (`RestoreForState`: `HoldDuration() < ForGracePeriod`),
# rules/alerting.go (`KeepFiringSince`, `resendDelay`), issues 15175 and 13957.
set -euo pipefail

work=$(mktemp -d)
pid=""
trap 'kill $pid 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
command -v prometheus >/dev/null || { echo "no prometheus"; exit 2; }
prometheus --version 2>&1 | head -n 1
port=$(python3 -c '
import socket
with socket.socket() as found:
    found.bind(("127.0.0.1", 0))
    print(found.getsockname()[1])')
cat >prometheus.yml <<'CONF'
global: {evaluation_interval: 2s}
rule_files: [rules.yml]
CONF
start() {
  prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address="127.0.0.1:$port" "$@" >prometheus.log 2>&1 &
  pid=$!
  until curl -sf "127.0.0.1:$port/-/ready" >ready.txt; do kill -0 "$pid"; sleep 0.2; done
}
states() {
  curl -s "127.0.0.1:$port/api/v1/alerts" | python3 -c '
import json, sys
found = {each["labels"]["alertname"]: each["state"] for each in json.load(sys.stdin)["data"]["alerts"]}
print(", ".join(name + " " + found.get(name, "gone") for name in ("Outage", "Kept")))'
}
# States are restored after the first evaluation, one interval later.
evaluated() { curl -s "127.0.0.1:$port/metrics" | awk -v least="$1" '/^prometheus_rule_group_iterations_total/ { found = $2 } END { exit found < least }'; }
restart() {
  kill "$pid"
  wait "$pid"
  start "$@"
  until evaluated 4; do kill -0 "$pid"; sleep 0.2; done
}

# Kept matches for the first 20 seconds of the run.
cat >rules.yml <<RULES
groups:
  - name: example
    rules:
      - alert: Outage
        expr: vector(1)
        for: 30s
      - alert: Kept
        expr: vector(time()) < $(($(date +%s) + 20))
        keep_firing_for: 1h
RULES
start
until [ "$(states)" = "Outage firing, Kept firing" ] && evaluated 12; do kill -0 "$pid"; sleep 0.2; done
echo "before: $(states)" >seen.txt
restart
echo "restarted, as by default: $(states)" >>seen.txt
until [ "$(states)" = "Outage firing, Kept gone" ]; do kill -0 "$pid"; sleep 0.2; done
restart --rules.alert.for-grace-period=10s
echo "restarted with a grace period of 10 s: $(states)" >>seen.txt
cat seen.txt
cat >known.txt <<'KNOWN'
before: Outage firing, Kept firing
restarted, as by default: Outage pending, Kept gone
restarted with a grace period of 10 s: Outage firing, Kept gone
KNOWN
if diff known.txt seen.txt; then
  echo "as described: a restart ends what was kept, and delays what fired"
else
  echo "changed"
  exit 1
fi
