"""`python -m mm2slo_cli` is the `mm2slo` command."""

import sys

from mm2slo_cli.main import main

sys.exit(main())
