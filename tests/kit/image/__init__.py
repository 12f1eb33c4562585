"""Read the Dockerfile, and run its steps where there is no container runtime."""
