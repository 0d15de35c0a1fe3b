"""Prometheus rules, their tests, and Alertmanager's configuration, generated from the objectives.

Pure functions from the configuration and the catalogue to files; the command line writes them.
"""
