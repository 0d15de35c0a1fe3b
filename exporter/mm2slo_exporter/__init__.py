"""The live exporter: samples clusters in the background, serves a finished snapshot."""
