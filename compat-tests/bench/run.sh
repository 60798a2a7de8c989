#!/usr/bin/env bash
# Starts Rollcall and franz-go's kfake on loopback and measures them in turn with
# `rollcall bench`. More servers can be named as arguments, NAME=HOST:PORT[@PID], to
# be measured in the same run; flags go through, too.
set -euo pipefail

cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$dir"' EXIT
(cd .. && CGO_ENABLED=0 go build -trimpath -o "$dir/rollcall" ./cmd/rollcall)
go build -o "$dir/kfake" ./kfake

port=${BENCH_PORT:-24092}
ROLLCALL_GROUP_INITIAL_REBALANCE_DELAY_MS=0 "$dir/rollcall" serve --listen "127.0.0.1:$port" \
  --admin "127.0.0.1:$((port + 1))" --data-dir "$dir/data" 2>"$dir/rollcall.log" &
"$dir/kfake" "$((port + 2))" >/dev/null &
for _ in $(seq 100); do
  "$dir/rollcall" check --admin "127.0.0.1:$((port + 1))" >/dev/null 2>&1 && break
  sleep 0.1
done
"$dir/rollcall" bench "$@" "rollcall=127.0.0.1:$port" "kfake=127.0.0.1:$((port + 2))"
