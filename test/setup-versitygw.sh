#!/bin/bash
# Builds versitygw, an S3 server over a folder, from its Go module. The tests of the raw logs run against it. The program
# is cached by its version; without Go, it is not built; the test run skips these tests and lists it as missing.
set -euo pipefail

version=v1.8.0
cache=$HOME/.cache/tagyard
program=$cache/versitygw-$version
[ -x "$program" ] && exit 0
command -v go >/dev/null || { echo "setup-versitygw: go is not installed" >&2; exit 1; }
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
GOBIN=$built GOFLAGS=-mod=mod go install "github.com/versity/versitygw/cmd/versitygw@$version"
mkdir -p "$cache"
mv "$built/versitygw" "$program"
