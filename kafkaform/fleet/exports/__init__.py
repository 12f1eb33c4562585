"""In: rows. Out: aligned text, JSON, and CSV that no spreadsheet runs.
Must not know: where rows come from, terminals.
"""
