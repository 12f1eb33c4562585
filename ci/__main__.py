"""`python -I ci`: the job of a pipeline. The environment says which one: `pipeline/job.py`.

Python's `-I` keeps the checkout, which anybody can have written, out of the search path.
"""

import sys

from pipeline.run import run_job

try:
    code = run_job()
except KeyboardInterrupt:  # between two commands, which handle signals themselves
    code = 130
sys.exit(code)
