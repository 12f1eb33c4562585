"""In: landing files, and lines of audit logs. Out: rows as they landed, and what is wrong there.
Must not know: Spark's tables, builds, answers.
"""
