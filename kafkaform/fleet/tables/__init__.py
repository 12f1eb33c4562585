"""Define every table, and read builds without Spark.

In: the table definitions (`tables.txt`), manifests of builds, files of Delta Lake. Out: columns and
keys, the version of each table that belongs to a build, rows. Must not know: how a table's rows are
computed.
"""
