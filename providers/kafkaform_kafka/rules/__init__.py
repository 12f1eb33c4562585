"""The rules by which changes of a cluster are judged, by subject; `book.py` has them all.

In: changes, listings and facts. Out: findings, and the rows of the table. Must not know: how
changes are sent or shown.
"""
