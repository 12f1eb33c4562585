"""Compute the silver and gold tables, except permissions.

In: rows of other tables, and the register. Out: rows of one table. Must not know: files, sessions,
the clock; `BuildContext.as_of` is the only "now". No function collects, counts or caches; each ends
with the columns that `tables.txt` defines.
"""
