"""Where replicas should be."""
