"""Prometheus rules and Alertmanager's configuration, generated from the objectives.

Pure functions that return the text of each file; the command line writes them.
"""
