"""Whom dangerous changes hit now: groups that read their topics, and producers that write to them.

In: changes that can do harm, an open session, and bounds. Out: findings of the rows in
`rules/looks.py`, and what was not looked at. Only reads, and decides nothing. Must not know:
plans, state, terminals.
"""
