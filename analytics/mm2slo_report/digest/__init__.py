"""The Slack digest: what a report says in one message, and posting it once."""
