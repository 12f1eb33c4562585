"""In: all changes of one cluster together. Out: what no single change can know: notes, risks and
refusals. Must not know: how changes are sent or shown.
"""
