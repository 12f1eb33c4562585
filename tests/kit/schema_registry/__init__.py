"""Schema registries for tests: what objects look like, how to reach one, how to touch it."""
