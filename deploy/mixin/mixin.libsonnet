// The generated rules and boards as a monitoring mixin. Without changes of _config, they are equal
// to the files in alerts/generated and dashboards/generated.
{
  _config+:: {
    alertLabels: {},  // of every alert, as { team: 'streaming' }
    runbookURL: null,  // folder of docs/runbooks, for the annotation runbook_url
    grafanaDashboardFolder: 'MirrorMaker 2',
  },

  local config = self._config,
  local read(text) = std.parseYaml(text).groups,

  prometheusRules+:: {
    groups+: read(importstr '../../alerts/generated/prometheus/mm2slo-recording.rules.yml'),
  },

  prometheusAlerts+:: {
    groups+: [
      group { rules: [rule + adapt(rule) for rule in group.rules] }
      for group in read(importstr '../../alerts/generated/prometheus/mm2slo-alerts.rules.yml')
    ],
    // Recording rules in groups of alerts stay as they are.
    local adapt(rule) = if !std.objectHas(rule, 'alert') then {} else {
      labels+: config.alertLabels,
      annotations+: if config.runbookURL == null then {} else {
        runbook_url: '%s/%s.md' % [std.rstripChars(config.runbookURL, '/'), rule.alert],
      },
    },
  },

  grafanaDashboardFolder:: config.grafanaDashboardFolder,
  grafanaDashboards+:: {
    'mm2slo-audit.json': import '../../dashboards/generated/grafana/dashboards/mm2slo-audit.json',
    'mm2slo-failover.json': import '../../dashboards/generated/grafana/dashboards/mm2slo-failover.json',
    'mm2slo-flow.json': import '../../dashboards/generated/grafana/dashboards/mm2slo-flow.json',
    'mm2slo-overview.json': import '../../dashboards/generated/grafana/dashboards/mm2slo-overview.json',
    'mm2slo-pipeline.json': import '../../dashboards/generated/grafana/dashboards/mm2slo-pipeline.json',
    'mm2slo-slo.json': import '../../dashboards/generated/grafana/dashboards/mm2slo-slo.json',
  },
}
