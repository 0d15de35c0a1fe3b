"""Posts messages to Slack by an incoming webhook or as a bot."""
