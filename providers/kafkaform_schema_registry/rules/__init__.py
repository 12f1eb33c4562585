"""The rules by which changes of a registry are judged, by subject; `book.py` has them all.

In: changes, answers of the registry and facts. Out: findings, and the rows of the table. Must not
know: how changes are sent or shown.
"""
