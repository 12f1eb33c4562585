"""What the rules say about a broker, tried on a real one with real clients."""
