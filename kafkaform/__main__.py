"""`python -m kafkaform`.

Python puts the current folder first among the places that it imports from. A configuration lies
there, and nothing of it may run.
"""

import sys

if not sys.flags.safe_path:
    del sys.path[0]

from .cli.app import main

main()
