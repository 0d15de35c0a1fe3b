"""`mm2slo`, and `python -m mm2slo_cli`.

The exporter starts here, without the command line, which its service does not need.
"""

import sys


def main() -> int:
    """Run the command line or the exporter; returns the exit code."""
    if sys.argv[1:2] == ["exporter"]:
        from mm2slo_cli.settings_process import FirstReading

        reading = FirstReading()
        if not reading.is_fork:
            from mm2slo_cli.gc_pause import paused_gc

            with paused_gc():
                from mm2slo_cli.exporter import run

            return run(reading)
    from mm2slo_cli.main import main as run_command_line

    return run_command_line()


if __name__ == "__main__":
    sys.exit(main())
