"""In: declared and live attributes. Out: the resource types, and the requests of their changes.

Must not know: connections, answers of registries.
"""
