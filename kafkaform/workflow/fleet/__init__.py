"""In: fleet.hcl, the fleet's clusters and states, a root. Out: snapshots, builds, answers.
Must not know: how flags are parsed or answers shown.
"""
