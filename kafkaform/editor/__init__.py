"""In: the texts of open files, a position, and what the folder declares. Out: faults, completions,
explanations, places and edits, which `server` hands to an editor; JSON Schemas. Must not know:
plans, states, terminals; it connects nowhere, runs nothing and reads no secret.
"""
