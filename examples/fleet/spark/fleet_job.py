"""The pipeline as a job for spark-submit: `spark-submit … fleet_job.py run --root …`."""

import sys

from kafkaform.cli.app import main

main(["fleet", *sys.argv[1:]])
