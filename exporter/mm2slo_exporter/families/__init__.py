"""Metric families of flows and of the exporter, as pure functions of their reports.

Each module has a table with the series of one flow for each of its metrics. Unknown values are
not published; each module documents what that means while a cluster is unreadable.
"""
