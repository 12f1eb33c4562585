"""The kinds of objects that the provider manages, one folder each.

To add a kind, write these modules and add the folder to `resource_kinds.py`:

- `resource_type`: the schema of a block, its canonical form, its rules, and the steps of a change;
- `read`: lists objects and reads them by identity;
- `send`: sends the steps of one request, once, or checks them in a dry run;
- `simulation`: the same for the simulated cluster;
- `kind`: the `ResourceKind` value that joins all of it.

In: declared and observed attributes, steps, an open connection. Out: readings, listings with their
coverage, and one reply for each step. Must not know: plans, batches, state, other kinds' requests.
"""
