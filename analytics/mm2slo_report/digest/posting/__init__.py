"""Ways to Slack: an incoming webhook, or a bot."""
