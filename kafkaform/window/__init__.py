"""A window on one folder: its state, log, plans and fleet tables as pages for a browser here.

In: a folder's files and stores. Out: pages, over HTTP on this computer only. Must not know: how
anything is written, locked, planned or applied.
"""
