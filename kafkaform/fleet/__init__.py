"""The answers that no single cluster's tool can give.
In: landing files (`core.landing`). Out: tables on Delta Lake, reports, answers.
It must not know: brokers, configurations, how landing files come to be. pyspark is loaded by those
modules that need it, never by this one, `tables`, `gold` readers or `cli`."""
