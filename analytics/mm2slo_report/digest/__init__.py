"""The Slack digest: a report as one message, posted once per period and channel."""
