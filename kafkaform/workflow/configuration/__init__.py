"""In: a folder's files and the environment. Out: its evaluated configuration, data sources
answered, and what an untrusted folder may not say. Must not know: states, plans.
"""
