#!/usr/bin/env bash
# Applies each patch of this directory to a copy of the tree and runs the tests
# that the patch names: they must fail. A patch begins with lines like these,
#
#   Rule N: what is broken
#   Run: PACKAGE -run REGEXP
#   Run: -C compat-tests PACKAGE -run REGEXP
#
# where N is the number of a rule in ARCHITECTURE.md and REGEXP chooses tests that
# pass without the patch. There may be several lines with tests; each must fail. With arguments, only the patches whose names match.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# What git would commit, plus what it does not know yet.
(cd "$root" && git ls-files -co --exclude-standard -z | tar --null --ignore-failed-read -cf - -T - 2>/dev/null) | tar -xf - -C "$copy"
cd "$copy"

tests() { # the rest of a Run line: run these tests
  local words=() module=()
  read -ra words <<<"$1"
  if [ "${words[0]}" = -C ]; then # which go wants to come first
    module=("${words[@]:0:2}")
    words=("${words[@]:2}")
  fi
  go test "${module[@]}" -count=1 -timeout 5m "${words[@]}"
}

survived=() checked=0
for patch in "$here"/*.patch; do
  name=$(basename "$patch" .patch)
  if [ $# -gt 0 ] && [[ "$name" != *$1* ]]; then continue; fi
  rule=$(sed -n '1s/^Rule \([0-9]*\):.*/\1/p' "$patch")
  mapfile -t runs < <(sed -n '2,/^$/s/^Run: //p' "$patch")
  if [ -z "$rule" ] || [ ${#runs[@]} -eq 0 ]; then
    echo "$name: the first lines must be 'Rule N: …' and 'Run: PACKAGE -run REGEXP'" >&2
    exit 1
  fi

  # Tests that fail anyway, or that are no tests, would show nothing.
  for run in "${runs[@]}"; do
    if ! before=$(tests "$run" 2>&1) || grep -q 'no tests to run' <<<"$before"; then
      printf '%s: these must pass without the patch: %s\n%s\n' "$name" "$run" "$before" >&2
      exit 1
    fi
  done
  git apply -C1 --recount "$patch" || { echo "$name: does not apply any more" >&2; exit 1; }
  result=killed
  for run in "${runs[@]}"; do
    if after=$(tests "$run" 2>&1); then
      result="SURVIVED ($run)"
    elif grep -q '\[build failed\]\|\[setup failed\]' <<<"$after"; then
      printf '%s: does not compile\n%s\n' "$name" "$after" >&2
      exit 1
    fi
  done
  echo "$result $name: $(head -1 "$patch")"
  [ "$result" = killed ] || survived+=("$name")
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
