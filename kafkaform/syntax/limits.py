"""Limits for configuration texts, because pull requests can be hostile."""

from __future__ import annotations

FILE_BYTES = 8 * 1024 * 1024
"""Size of one file."""
ALL_FILES_BYTES = 64 * 1024 * 1024
"""Size of all configuration files together, and of all files that functions read."""
TOKENS = 800_000
"""Tokens of one file. 10,000 ordinary blocks have 600,000, which take up to 4 s and 300 MB."""

COLLECTION_ELEMENTS = 100_000
"""Elements of one list or object."""
# Python's own limit is 1,000 frames, and a level of evaluation takes several of them.
NESTING = 100
"""Brackets, blocks and templates inside each other; also the depth of an expression, in which a
chain of binary operators counts as one level."""

STRING_CHARACTERS = 1024 * 1024
NUMBER_CHARACTERS = 1000
# `1e999999999` is short, but its digits would fill the memory.
NUMBER_EXPONENT = 1000
DIAGNOSTICS = 50
"""Syntax errors shown for one file; later ones are rarely new."""

EXCERPT_CHARACTERS = 200
"""Characters of a source line in a message."""
