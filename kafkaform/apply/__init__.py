"""In: an approved plan, sessions, state and journal. Out: the world changed as planned, on record.

Must not know: HCL, how anything is shown, Kafka.
"""
