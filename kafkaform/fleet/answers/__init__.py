"""In: the tables of a build. Out: answers to `fleet history`, `fleet status`, `fleet query` and
`fleet who-can`, without a JVM. Must not know: Spark, command lines.
"""
