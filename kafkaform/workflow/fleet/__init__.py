"""The operations behind `kafkaform fleet`: snapshots, builds, answers.

In: fleet.hcl, the fleet's clusters and states, a root. Out: landing files, tables, texts. Must not
know: how flags are parsed or answers are printed.
"""
