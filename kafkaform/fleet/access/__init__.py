"""Compute who may do what, as the authorizer of each cluster would decide it.

In: the ACLs of each cluster. Out: rows about patterns and resources, and grants that deserve a
second look. Must not know: sessions, plans.
"""
