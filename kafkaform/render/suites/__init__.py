"""In: the results of test files. Out: text, JSON lines, and JUnit's XML.
Must not know: how a test runs.
"""
