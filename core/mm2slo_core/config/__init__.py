"""mm2slo.yaml: its shape, its checks, and one report of everything that is wrong with it.

`load_config` turns the text into a frozen `Config` or raises `ConfigError`. This package
opens no file and reads no environment: `Resolvers` are handed in.
"""

from mm2slo_core.config.alerting import (
    AlertingConfig,
    LinksConfig,
    MaintenanceConfig,
    SlackChannel,
    Webhook,
)
from mm2slo_core.config.audit import AuditConfig, FlowAuditConfig, IdentityConfig, SparkConfig
from mm2slo_core.config.canary import CanaryCarrier, CanaryConfig
from mm2slo_core.config.cluster import ClusterConfig
from mm2slo_core.config.exporter import (
    ExporterConfig,
    Granularity,
    Listen,
    LogConfig,
    LogFormat,
    LogLevel,
    TimelineConfig,
)
from mm2slo_core.config.flow import (
    ConnectConfig,
    Engine,
    FlowConfig,
    FreshnessClass,
    Isolation,
    PolicyConfig,
    PolicyKind,
    ReadinessConfig,
)
from mm2slo_core.config.loading import load_config
from mm2slo_core.config.model import Config
from mm2slo_core.config.notices import notices, unavailable
from mm2slo_core.config.problems import ConfigError, Problem
from mm2slo_core.config.published import default_objective_rules
from mm2slo_core.config.references import NO_RESOLVERS, Resolvers, UnresolvedError
from mm2slo_core.config.report import PrometheusConfig, RecorderConfig, ReportConfig, TlsFiles
from mm2slo_core.config.slo import ObjectiveConfig, SloConfig

__all__ = [
    "NO_RESOLVERS",
    "AlertingConfig",
    "AuditConfig",
    "CanaryCarrier",
    "CanaryConfig",
    "ClusterConfig",
    "Config",
    "ConfigError",
    "ConnectConfig",
    "Engine",
    "ExporterConfig",
    "FlowAuditConfig",
    "FlowConfig",
    "FreshnessClass",
    "Granularity",
    "IdentityConfig",
    "Isolation",
    "LinksConfig",
    "Listen",
    "LogConfig",
    "LogFormat",
    "LogLevel",
    "MaintenanceConfig",
    "ObjectiveConfig",
    "PolicyConfig",
    "PolicyKind",
    "Problem",
    "PrometheusConfig",
    "ReadinessConfig",
    "RecorderConfig",
    "ReportConfig",
    "Resolvers",
    "SlackChannel",
    "SloConfig",
    "SparkConfig",
    "TimelineConfig",
    "TlsFiles",
    "UnresolvedError",
    "Webhook",
    "default_objective_rules",
    "load_config",
    "notices",
    "unavailable",
]
