#!/usr/bin/env bash
# Plans with credentials that can only read. Leaves in out/:
#   plan.md       the comment for the review
#   plan.html     the whole plan as a page, also if the comment is shortened
#   plan.kfplan   the plan, with which a refused apply says what differs
#   approval.txt  what ci/apply.sh needs to apply exactly this; empty if there is nothing to apply
# Ends with 0 if there are changes, too, also where some are blocked and the rest can be applied: the
# comment lists them first, and ci/apply.sh then ends with 8. With any other code there is no approval.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf out # whoever wrote the branch may have put files or links there
mkdir out

code=0
kafkaform --chdir kafka plan --untrusted --no-color --detailed-exitcode \
  --out "$PWD/out/plan.kfplan" --html "$PWD/out/plan.html" \
  --comment "$PWD/out/plan.md" --comment-name kafka > out/plan.txt || code=$?
cat out/plan.txt
case $code in
  0 | 2) sed -n 's/^Approval: //p' out/plan.txt > out/approval.txt ;;
  8)
    approval=$(sed -n 's/^Approval: //p' out/plan.txt)
    [ "$approval" ] || exit 8
    echo "$approval" > out/approval.txt
    ;;
  *) exit "$code" ;;
esac
