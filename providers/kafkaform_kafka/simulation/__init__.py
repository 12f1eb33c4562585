"""The parts of the simulated cluster that all kinds of objects share.

A controller with one log, brokers that follow it, a clock, rights, and mishaps on a schedule.
"""
