"""A fake of Slack's incoming webhooks and Web API that enforces Slack's documented limits.

It also refuses messages that Slack accepts but shows wrongly: an unescaped `<`, folded text, a
button without a URL.
"""

from fake_slack.incoming_webhook import FakeSlackWebhook, Message
from fake_slack.message_limits import RefusalError, check_message
from fake_slack.slack_web_api import FakeSlackApi

__all__ = ["FakeSlackApi", "FakeSlackWebhook", "Message", "RefusalError", "check_message"]
