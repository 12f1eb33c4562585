"""In: names of rules, plans, live systems. Out: conditions that hold, and what exists and is wrong.
Must not know: flags, how findings are shown.
"""
