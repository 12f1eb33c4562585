"""Decides who may do what: a simulation of Kafka's authorizer, and what plans change about it.

In: ACLs, and our own rights as the cluster reports them. Out: access decisions, the effect of a
changed ACL, and the rights that a plan needs. Must not know: how plans are shown, state files.
"""
