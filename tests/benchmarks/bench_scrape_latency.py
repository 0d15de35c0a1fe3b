"""Time of a scrape while the rounds of a flow of 50,000 moving partitions are evaluated.

The exporter's evaluation and web server run in a process of their own, without Kafka. A round
follows the one before without a pause, so that each scrape competes with an evaluation.
"""

import argparse
import subprocess
import sys
import time

from exposition_baselines import fetch

REQUEST = (
    b"GET /metrics HTTP/1.1\r\nHost: bench\r\nAccept: application/openmetrics-text\r\n"
    b"Accept-Encoding: %s\r\nConnection: close\r\n\r\n"
)


def serve(partitions: int) -> None:
    """Evaluate and serve; prints the port after the first rounds, then the seconds per round."""
    from bench_exposition import OneSnapshot  # type: ignore[import-not-found]
    from bench_round import Flow  # type: ignore[import-not-found]

    from mm2slo_cli.exporter import configure_interpreter
    from mm2slo_core.catalogue.metric import Granularity
    from mm2slo_core.config.exporter_settings import Listen
    from mm2slo_exporter.web.exporter_app import exporter_server

    configure_interpreter()
    flow = Flow(partitions, Granularity.PARTITION)
    site = OneSnapshot(flow.move())
    for _ in range(2):
        site.newest = flow.move()
    with exporter_server(Listen("127.0.0.1", 0), site, None) as server:
        print(server.address.port, flush=True)
        while True:
            started = time.perf_counter()
            site.newest = flow.move()
            print(time.perf_counter() - started, flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--partitions", type=int, default=50_000)
    arguments.add_argument("--scrapes", type=int, default=300)
    arguments.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.serve:
        serve(chosen.partitions)
        return
    command = [sys.executable, __file__, "--serve", "--partitions", str(chosen.partitions)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            print(f"scrapes while {chosen.partitions:,} moving partitions are evaluated")
            for encoding in (b"gzip", b"identity"):
                took = []
                for _ in range(chosen.scrapes):
                    started = time.perf_counter()
                    size = fetch(port, REQUEST % encoding)
                    took.append((time.perf_counter() - started) * 1000)
                    time.sleep(0.05)
                took.sort()
                print(
                    f"  {encoding.decode():<10}{size:>14,} bytes  "
                    f"p50 {took[len(took) // 2]:7.1f} ms  "
                    f"p99 {took[len(took) * 99 // 100]:7.1f} ms  max {took[-1]:7.1f} ms"
                )
            print(f"  one round      {float(process.stdout.readline()):.1f} s")
        finally:
            process.kill()


if __name__ == "__main__":
    main()
