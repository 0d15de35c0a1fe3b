"""The vocabulary of mm2slo: frozen values and pure functions, no I/O."""
