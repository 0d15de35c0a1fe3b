"""`mm2slo demo`: two clusters, MirrorMaker 2, traffic and the exporter in one terminal."""

from mm2slo_cli.demo.command import run

__all__ = ["run"]
