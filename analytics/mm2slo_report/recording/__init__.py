"""The embedded recorder: the exporters' counters, kept in the results store by the minute."""
