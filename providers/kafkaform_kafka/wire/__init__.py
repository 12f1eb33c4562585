"""In: plain values for one admin request. Out: the answer, row by row, with every error code.
The only place that imports kafka-python, pinned because two of its inner parts are used.
Must not know: changes, plans, resource types, or what an error means for a plan.
"""
