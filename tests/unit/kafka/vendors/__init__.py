"""Profiles of vendors: their tables, which one applies, what it does with changes and faults."""
