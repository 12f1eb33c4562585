"""In: declarations, values of variables, schemas. Out: every block evaluated in each instance of
its module, each after what it needs. Must not know: where files come from, plans, live objects.
"""
