"""In: a plan, diagnostics, outcomes and progress events. Out: text, Markdown and JSON lines.

Must not know: HCL, systems, files, how a plan is made, or any word that belongs to Kafka alone.
"""
