"""Objectives of flows, their window pairs, error budgets and exclusions."""
