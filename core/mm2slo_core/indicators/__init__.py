"""What is measured of a flow: lag, state, canaries, failover readiness and SLIs."""
