"""Policies: from `policy` and `policy_set` blocks, and changes as data, to what the changes break.

Must not know: where the blocks come from, what a plan is, or what day it is.
"""
