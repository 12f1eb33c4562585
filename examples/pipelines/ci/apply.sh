#!/usr/bin/env bash
# Applies what was approved and nothing else: KAFKAFORM_EXPECT is what ci/plan.sh left in
# out/approval.txt. If the file KAFKAFORM_REVIEWED exists, it is out/plan.kfplan of the same run: a
# refusal then says what differs. To be started as `exec ci/apply.sh`, so that the signals of a cancelled job
# arrive here. Can be run again after whatever happened, on an empty disk: the same approval
# goes on where the run before was stopped.
# Ends with the exit code of `kafkaform apply`.
set -uo pipefail
cd "$(dirname "$0")/../kafka" || exit 1
: "${KAFKAFORM_EXPECT?is not set: the approval that ci/plan.sh left, or empty if it left none}"

if [ -z "$KAFKAFORM_EXPECT" ]; then
  kafkaform plan --no-color --detailed-exitcode
  code=$?
  if [ "$code" -eq 2 ]; then
    echo "Nothing was approved, and by now there is something to apply: plan again." >&2
    code=4
  fi
  exit "$code"
fi

# A shell waits for a command before it looks at a signal, and does not pass it on. So the command
# runs in the background, and every signal goes to it: the first lets it finish what is under way
# and save, the second lets it save only.
signals=0 early="" apply=""
trap 'signals=$((signals + 1)); if [ "$apply" ]; then kill -TERM "$apply"; else early=1; fi' INT TERM HUP
reviewed=()
[ ! -f "${KAFKAFORM_REVIEWED:-}" ] || reviewed=(--reviewed "$KAFKAFORM_REVIEWED")
kafkaform apply --no-color --expect "$KAFKAFORM_EXPECT" ${reviewed[@]+"${reviewed[@]}"} \
  --lock-timeout "${KAFKAFORM_LOCK_TIMEOUT:-10m}" < /dev/null &
apply=$!
[ -z "$early" ] || kill -TERM "$apply"
code=0
wait "$apply" || code=$?
seen=0
while [ "$signals" -ne "$seen" ]; do # a signal ended the waiting, not the command
  seen=$signals
  code=0
  wait "$apply" || code=$?
done
trap - INT TERM HUP

case $code in
  0) next="" ;;
  4) next="This is not what was approved any more. Plan again, review, apply with the new approval." ;;
  5) next="Some changes failed: see why above, then run this job again with the same approval." ;;
  6) next="Nobody knows yet whether some requests arrived, or whether every broker shows what was applied. Run this job again: it finds out first." ;;
  7) next="Another run holds the lock. Run this job again; \`kafkaform lock show\` says who it is." ;;
  8) next="Not all that is declared is so: what is blocked, and what to do, stands above." ;;
  130 | 143) next="Cancelled, and everything is recorded. Run this job again: it goes on from here." ;;
  *) next="See above." ;;
esac
[ -z "$next" ] || echo "$next" >&2

# For the log of this job, where nobody who can write the store can change it:
# `kafkaform audit verify --anchor HEAD` proves later that nothing before it was changed.
echo "Audit head: $(kafkaform audit head)"
verified=0
kafkaform audit verify || verified=$?
[ "$code" -ne 0 ] || code=$verified
exit "$code"
