"""The rules of topics.

In: changes of topics and of their configs. Out: findings. Must not know: rules of other subjects.
"""
