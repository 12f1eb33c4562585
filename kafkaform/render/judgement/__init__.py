"""In: rules, and what they found in live systems. Out: text, JSON, SARIF.
Must not know: how a system is read.
"""
