#!/usr/bin/env bash
# Applies each patch of this directory to a copy of the tree and runs the tests
# that the patch names: they must fail. A patch begins with two lines,
#
#   Rule N: what is broken
#   Run: PACKAGE -run REGEXP
#
# where N is the number of a rule in ARCHITECTURE.md and REGEXP chooses tests that
# pass without the patch. With arguments, only the patches whose names match.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# What git would commit, plus what it does not know yet.
(cd "$root" && git ls-files -co --exclude-standard -z | tar --null --ignore-failed-read -cf - -T - 2>/dev/null) | tar -xf - -C "$copy"
cd "$copy"

survived=() checked=0
for patch in "$here"/*.patch; do
  name=$(basename "$patch" .patch)
  if [ $# -gt 0 ] && [[ "$name" != *$1* ]]; then continue; fi
  rule=$(sed -n '1s/^Rule \([0-9]*\):.*/\1/p' "$patch")
  run=$(sed -n '2s/^Run: //p' "$patch")
  if [ -z "$rule" ] || [ -z "$run" ]; then
    echo "$name: the first two lines must be 'Rule N: …' and 'Run: PACKAGE -run REGEXP'" >&2
    exit 1
  fi
  read -ra words <<<"$run"
  test=(go test -count=1 -timeout 5m "${words[@]}")

  # Tests that fail anyway, or that are no tests, would show nothing.
  if ! before=$("${test[@]}" 2>&1) || grep -q 'no tests to run' <<<"$before"; then
    printf '%s: these must pass without the patch: %s\n%s\n' "$name" "${test[*]}" "$before" >&2
    exit 1
  fi
  git apply -C1 --recount "$patch" || { echo "$name: does not apply any more" >&2; exit 1; }
  if after=$("${test[@]}" 2>&1); then
    echo "SURVIVED $name: $(head -1 "$patch")"
    survived+=("$name")
  elif grep -q '\[build failed\]\|\[setup failed\]' <<<"$after"; then
    printf '%s: does not compile\n%s\n' "$name" "$after" >&2
    exit 1
  else
    echo "killed   $name: $(head -1 "$patch")"
  fi
  git apply -R -C1 --recount "$patch"
  checked=$((checked + 1))
done

if [ "$checked" -eq 0 ]; then
  echo "no patch was checked" >&2
  exit 1
fi
if [ ${#survived[@]} -gt 0 ]; then
  echo "${#survived[@]} of $checked mutants survived: ${survived[*]}" >&2
  exit 1
fi
echo "$checked mutants, all killed"
