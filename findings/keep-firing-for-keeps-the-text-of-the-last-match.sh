#!/usr/bin/env bash
# Prometheus's keep_firing_for: a kept alert keeps its text, and is kept longer than it says.
#
# Version: Prometheus 2.42.0, the first with `keep_firing_for`; needs its promtool, or a newer one
# (Debian 12: `apt-get install prometheus`).
#
# Expected: annotations of a firing alert are expanded at each evaluation, so that one with a
# `query` shows the current value while the alert is kept. `keep_firing_for: 5m` keeps it for 5
# minutes "after the firing condition was last met" (documentation), and `keep_firing_for: 1s` with
# evaluations each minute does not keep it at all.
#
# What happens: templates are expanded for the results of the expression only. A kept alert has no
# result, so `$value` and each `query` in an annotation stay those of the last match: the text says
# 5000 when the series has been near 10 for minutes. The time starts at the first evaluation that
# does not match, not at the last that does: the alert fires for one evaluation interval more, and
# `1s` keeps it until the evaluation after next. ALERTS does not distinguish a kept alert from
# another.
#
# Source: prometheus/prometheus, rules/alerting.go (`AlertingRule.Eval`: `expand` inside the loop
# over the results; `KeepFiringSince = ts` where the result is missing);
# docs/configuration/alerting_rules.md (`keep_firing_for`).
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
command -v promtool >/dev/null || { echo "no promtool"; exit 2; }
promtool --version 2>&1 | head -n 1
cat >rules.yml <<'RULES'
groups:
  - name: lag
    interval: 1m
    rules:
      - alert: Kept5m
        expr: lag > 1000
        keep_firing_for: 5m
        annotations:
          text: 'value {{ $value }}, query {{ with query "lag" }}{{ . | first | value }}{{ end }}'
      - alert: Kept1s
        expr: lag > 1000
        keep_firing_for: 1s
        annotations:
          text: 'value {{ $value }}, query {{ with query "lag" }}{{ . | first | value }}{{ end }}'
RULES
# The series matches at 1m and 2m.
cat >known.yml <<'KNOWN'
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: lag, values: 50 2000 5000 10 11 12 13 14 15}
    alert_rule_test:
      - eval_time: 1m
        alertname: Kept5m
        exp_alerts: [{exp_annotations: {text: "value 2000, query 2000"}}]
      - eval_time: 2m
        alertname: Kept5m
        exp_alerts: [{exp_annotations: {text: "value 5000, query 5000"}}]
      - eval_time: 3m
        alertname: Kept5m
        exp_alerts: [{exp_annotations: {text: "value 5000, query 5000"}}]
      - eval_time: 7m
        alertname: Kept5m
        exp_alerts: [{exp_annotations: {text: "value 5000, query 5000"}}]
      - eval_time: 8m
        alertname: Kept5m
        exp_alerts: []
      - eval_time: 3m
        alertname: Kept1s
        exp_alerts: [{exp_annotations: {text: "value 5000, query 5000"}}]
      - eval_time: 4m
        alertname: Kept1s
        exp_alerts: []
    promql_expr_test:
      - eval_time: 7m
        expr: lag
        exp_samples: [{labels: lag, value: 14}]
      - eval_time: 7m
        expr: ALERTS
        exp_samples: [{labels: 'ALERTS{alertname="Kept5m", alertstate="firing"}', value: 1}]
KNOWN
# Without expectations promtool prints each alert and sample that it sees, as a difference.
grep -v exp_ known.yml >seen.yml
promtool test rules seen.yml 2>&1 | grep -E 'time:|Annotations:|got: \{' || true
if promtool test rules known.yml; then
  echo "as described: the text stays at 5000, 5m lasts until 8m, 1s until 4m"
else
  echo "changed"
  exit 1
fi
