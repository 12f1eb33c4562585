#!/usr/bin/env bash
# The promise of the README, proved: clone into a temporary folder and run the two commands with an
# empty environment, an empty HOME, and a PATH that has Python, git and make but neither java nor mvn.
#
#   tests/fresh_clone.sh             both commands
#   tests/fresh_clone.sh demo        one of them
set -euo pipefail

source=$(cd "$(dirname "$0")/.." && git rev-parse --show-toplevel)
work=$(mktemp -d "${TMPDIR:-/tmp}/kafkaform-fresh-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/home"

# A PATH of its own: everything that is on the usual one, but no Java and no Maven.
IFS=: read -ra folders <<<"/usr/local/bin:/usr/bin:/bin:$PATH"
for folder in "${folders[@]}"; do
  for tool in "$folder"/*; do
    name=$(basename "$tool")
    case "$name" in
      java | javac | jar | mvn | mvnDebug | jshell | keytool | openssl) continue ;;
    esac
    [ -x "$tool" ] && [ ! -e "$work/bin/$name" ] && ln -s "$tool" "$work/bin/$name"
  done
done
if env -i PATH="$work/bin" "$work/bin/sh" -c 'command -v java || command -v mvn'; then
  echo "java or mvn is still on the PATH: the proof would prove nothing" >&2
  exit 1
fi

git clone --quiet "$source" "$work/clone"
cd "$work/clone"
for target in "${@:-demo test}"; do
  for one in $target; do
    echo "== make $one, in an empty environment"
    env -i HOME="$work/home" PATH="$work/bin" "$work/bin/make" "$one"
  done
done
echo "== both commands passed in a fresh clone"
