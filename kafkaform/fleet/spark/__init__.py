"""Start Spark quickly, and write tables with Delta Lake.

In: a Java, jars, a root. Out: a Spark session, and tables in Delta Lake. Must not know: what the
tables mean.
"""
