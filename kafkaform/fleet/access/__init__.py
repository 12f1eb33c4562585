"""In: the ACLs of each cluster. Out: who may do what as the authorizer decides it, as rows about
patterns and resources, and grants that deserve a second look. Must not know: sessions, plans.
"""
