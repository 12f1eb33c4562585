"""In: an approved plan, sessions, state and journal. Out: the world changed exactly so, recorded.

Must not know: HCL, how anything is shown, Kafka.
"""
