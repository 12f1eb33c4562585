"""The parts of the simulated cluster that every kind of object shares: a controller with one log,
brokers that follow it, a clock, rights, and mishaps on a schedule."""
