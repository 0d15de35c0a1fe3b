"""`python -m mm2slo_audit`, or this file given to spark-submit: the same as `mm2slo audit`."""

import importlib
import sys

if __name__ == "__main__":
    # Imported by name: packages below the command line must not import it.
    main = importlib.import_module("mm2slo_cli.main").main
    sys.argv[1:1] = ["audit"]
    sys.exit(main())
