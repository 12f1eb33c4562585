"""What the fleet's pipeline works on, laid down in files that never change.
In: sessions, states, logs, desired objects, the register. Out: landing files (`core.landing`).
It must not know: Spark, tables, Kafka's words beyond the kinds that it is given."""
