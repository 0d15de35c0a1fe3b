"""The models of mm2slo.yaml, their validation, and one report of all problems.

`load_config` returns a frozen `Config` or raises `ConfigError`. This package opens no file and
reads no environment variable: the caller passes `Resolvers`.
"""

from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_core.config.cluster_config import ClusterConfig
from mm2slo_core.config.config_layers import BaseConfig
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.config_problems import ConfigError, Problem
from mm2slo_core.config.exporter_config import Listen
from mm2slo_core.config.flow_config import FlowConfig, PolicyKind
from mm2slo_core.config.mirror_files import MirrorFilesConfig
from mm2slo_core.config.notices import notices, unavailable
from mm2slo_core.config.published_indicators import default_objective_rules
from mm2slo_core.config.secret_references import Resolvers, UnresolvedError

__all__ = [
    "AlertingConfig",
    "BaseConfig",
    "CanaryCarrier",
    "ClusterConfig",
    "Config",
    "ConfigError",
    "FlowConfig",
    "Listen",
    "MirrorFilesConfig",
    "PolicyKind",
    "Problem",
    "Resolvers",
    "UnresolvedError",
    "default_objective_rules",
    "load_config",
    "notices",
    "unavailable",
]
