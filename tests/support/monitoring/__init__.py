"""Prometheus, Alertmanager and receivers of their messages, as local processes."""
