"""In: the definitions of all tables (`tables.txt`), manifests of builds, files of Delta Lake.
Out: columns and keys, which version of a table belongs to a build, rows read without Spark.
Must not know: how a table's rows are made.
"""
