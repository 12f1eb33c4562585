"""Reviews all changes of one cluster together, for what no single change can show.

In: all changes of one cluster, and listings. Out: notes, warnings, losses and blocks. Must not
know: how changes are sent or shown.
"""
