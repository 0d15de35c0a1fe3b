"""The report service: objectives as an API, a page and a Slack digest."""
