"""Rules: what is known about changes of a cluster. In: changes, and what was read. Out: findings.
Must not know: how changes are sent or shown."""
