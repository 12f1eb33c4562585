"""What many tests need: one helper of each kind."""
