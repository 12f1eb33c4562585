"""In: text and numbers. Out: text that people can read safely: without control characters, in the
columns that a terminal has, in the units that people think in.

Must not know: what the text is about.
"""
