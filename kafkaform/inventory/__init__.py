"""Write landing files: what clusters show, states record and configurations declare, and audit
logs.

In: sessions, states, logs, desired objects, the register. Out: landing files (`core.landing`),
which never change. It must not know: Spark, tables, Kafka's words beyond the kinds that it is
given.
"""
