"""Profiles of vendors: their tables, which one applies, and what it does with changes and faults."""
