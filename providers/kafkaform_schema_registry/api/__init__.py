"""In: values of this provider, answers of a registry. Out: calls, parsed answers, faults.

Must not know: resource types, sessions, plans.
"""
