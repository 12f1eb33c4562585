"""In: calls of the REST API. Out: the answers of Connect workers that exist only in memory.

Must not know: how a session uses the answers.
"""
