"""In: a Java, jars and a root. Out: a Spark session that starts fast, and tables in Delta Lake.
Must not know: what the tables mean.
"""
