"""Commands that bring objects in from elsewhere, and out to elsewhere."""
