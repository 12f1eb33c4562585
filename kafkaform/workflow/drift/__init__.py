"""Drift: who set a drifted object last.

In: plans with drifted objects, the log, the fleet's tables. Out: text in the plan.
"""
