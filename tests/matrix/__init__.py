"""The same tests on every version of Kafka that the sandbox runs: `make test-matrix`."""
