#!/usr/bin/env bash
# Is everything still as the last apply left it? Reads only; out/drift.md is the report, which leads
# with what was changed, and who last set it here and when.
# Ends with 0 if so, 8 if somebody changed something, 2 if a change waits to be applied.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p out

code=0
kafkaform --chdir kafka plan --refresh-only --no-color --fail-on=drift \
  --comment "$PWD/out/drift.md" --comment-name kafka || code=$?
if [ "$code" -eq 0 ]; then
  # Without drift, the report is about what was merged and never applied. This job has no secrets.
  kafkaform --chdir kafka plan --untrusted --no-color --detailed-exitcode \
    --comment "$PWD/out/drift.md" --comment-name kafka || code=$?
fi
case $code in
  0) echo "No drift." ;;
  2) echo "No drift, but a change was merged and never applied: apply it with the approval above." ;;
  8) echo "Drift: the cluster is not as the last apply left it, or a change is blocked." ;;
esac
exit "$code"
