"""Answer `fleet history`, `fleet status`, `fleet query` and `fleet who-can` without a JVM.

In: the tables of a build. Out: rows and text. Must not know: Spark, command lines.
"""
