"""Listings that only reviews read, and no block declares: our own rights, and the live groups."""
