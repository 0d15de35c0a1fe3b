"""Parses the generated dashboards' JSON; a setting that the preview cannot draw fails."""
