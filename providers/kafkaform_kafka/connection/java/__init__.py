"""The connection settings of Java clients as attributes of the provider block.

In: a file of properties. Out: attributes, secrets and faults. Must not know: connections. No class
of Java is loaded and no command is run.
"""
