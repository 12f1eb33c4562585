"""Bounds on what a configuration text may be, against hostile pull requests."""

from __future__ import annotations

FILE_BYTES = 8 * 1024 * 1024
ALL_FILES_BYTES = 64 * 1024 * 1024
TOKENS = 800_000
"""Words and marks of one file; 10,000 ordinary blocks have 600,000. They take up to 4 seconds and
300 MB."""

COLLECTION_ELEMENTS = 100_000
NESTING = 100
"""Brackets, blocks and templates inside each other; also the depth of any expression, where a
chain of binary operators counts once."""

STRING_CHARACTERS = 1024 * 1024
NUMBER_CHARACTERS = 1000
NUMBER_EXPONENT = 1000
DIAGNOSTICS = 50
"""Syntax errors shown per file; what follows is rarely new."""

EXCERPT_CHARACTERS = 200
