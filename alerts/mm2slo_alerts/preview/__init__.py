"""Preview of an alert's Slack message.

promtool renders the annotations as Prometheus does, amtool the message templates as Alertmanager
does. These pure functions write their input and parse their output; the command line runs them.
"""
