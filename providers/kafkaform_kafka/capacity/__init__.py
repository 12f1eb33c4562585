"""What fits on the disks of brokers: how full they are, how fast they fill, and what a plan adds.

In: the connection, and changes. Out: disks, growth, projections, findings. Not known here:
documents and pages.
"""
