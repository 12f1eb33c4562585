"""In: texts of schemas. Out: their normal form, what differs between two of them, and who can read
what was written with which.

Must not know: registries, requests, resource types.
"""
