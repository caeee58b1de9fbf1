#!/bin/sh
# The main job on the embedded default: text from pip packages, a tiny biLM, two representations beside each other,
# senses of a few words, and the dashboard. Every line that starts with $ is a command that you can type yourself.
set -eu
BIN=${BIN:-.venv/bin}
PATH="$(cd "$BIN" && pwd):$PATH"
RUN="demo-$(date -u +%Y%m%dT%H%M%S)"

say() { printf '\n$ %s\n' "$*"; "$@"; }

say toolkit data get demo-text
TEXT=$(toolkit data get demo-text --json | python -c 'import json, sys; print(json.load(sys.stdin)["path"])')
say toolkit pretrain --corpus "$TEXT" --preset tiny --minutes "${DEMO_MINUTES:-3}" --name "$RUN"
say toolkit evaluate --task rotten_tomatoes --model "$RUN" --mix none,learned --seeds 2
say toolkit senses index "$RUN" --wordnet --words bank,spring,plant,star,match,bass --name "$RUN-senses"
say toolkit runs list
[ -z "${CI:-}" ] || exit 0
say toolkit dashboard
