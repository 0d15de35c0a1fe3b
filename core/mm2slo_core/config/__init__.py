"""The models of mm2slo.yaml, their validation, and one report of all problems.

`load_config` returns a frozen `Config` or raises `ConfigError`. This package opens no file and
reads no environment variable: the caller passes `Resolvers`.
"""

from mm2slo_core.config.alerting_config import (
    AlertingConfig,
    LinksConfig,
    MaintenanceConfig,
    SlackChannel,
    Webhook,
)
from mm2slo_core.config.audit_config import (
    AuditConfig,
    FlowAuditConfig,
    IdentityConfig,
    SparkConfig,
)
from mm2slo_core.config.canary_config import CanaryCarrier, CanaryConfig
from mm2slo_core.config.cluster_config import ClusterConfig
from mm2slo_core.config.config_layers import BaseConfig
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.config_problems import ConfigError, Problem
from mm2slo_core.config.exporter_config import (
    ExporterConfig,
    Granularity,
    Listen,
    LogConfig,
    LogFormat,
    LogLevel,
    TimelineConfig,
)
from mm2slo_core.config.flow_config import (
    ConnectConfig,
    Engine,
    FlowConfig,
    FreshnessClass,
    Isolation,
    PolicyConfig,
    PolicyKind,
    ReadinessConfig,
)
from mm2slo_core.config.mirror_files import MirrorFilesConfig
from mm2slo_core.config.notices import notices, unavailable
from mm2slo_core.config.published_indicators import default_objective_rules
from mm2slo_core.config.report_config import (
    PrometheusConfig,
    RecorderConfig,
    ReportConfig,
    TlsFiles,
)
from mm2slo_core.config.secret_references import NO_RESOLVERS, Resolvers, UnresolvedError
from mm2slo_core.config.slo_config import ObjectiveConfig, SloConfig

__all__ = [
    "NO_RESOLVERS",
    "AlertingConfig",
    "AuditConfig",
    "BaseConfig",
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
    "MirrorFilesConfig",
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
