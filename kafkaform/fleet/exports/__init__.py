"""Render rows as aligned text, as JSON, and as CSV that no spreadsheet executes.

In: rows. Out: text and files. Must not know: where rows come from, terminals.
"""
