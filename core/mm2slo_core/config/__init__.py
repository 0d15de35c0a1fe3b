"""The models of mm2slo.yaml, their validation, and one report of all problems.

`load_config` returns a frozen `Config` or raises `ConfigError`. This package opens no file and
reads no environment variable: the caller passes `Resolvers`.
"""
