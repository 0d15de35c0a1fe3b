"""The report service: `/slo` as an API, a page, and a Slack digest."""
