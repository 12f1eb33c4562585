"""In: what a program writes or reads as a value. Out: the language's values and types, conversion
between them, exact numbers, and the faults and bounds that all evaluation shares.
Must not know: expressions, blocks, schemas.
"""
