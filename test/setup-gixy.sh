#!/bin/bash
# Installs gixy (gixy-ng, MPL 2.0), which checks configurations of nginx, from PyPI into a virtual environment that is
# cached by gixy's version. The last line of the output is the program's path. If PyPI can't be reached, nothing is
# installed, and the tests that need gixy are skipped and named.
set -euo pipefail

packages=(gixy-ng==0.2.59 ngxparse==0.5.16 ConfigArgParse==1.9.0 Jinja2==3.1.6 MarkupSafe==3.0.4)
cache=$HOME/.cache/tagyard
installed=$cache/gixy-${packages[0]##*=}
program=$installed/bin/gixy
if [ -x "$program" ]; then
  echo "$program"
  exit 0
fi
mkdir -p "$cache"
# Built in its final place, because the environment's programs have the folder's path in them.
trap 'rm -rf "$installed"' EXIT
/usr/bin/python3 -m venv --clear "$installed"
"$installed/bin/pip" install --quiet --disable-pip-version-check --no-deps "${packages[@]}"
"$program" --version >/dev/null
trap - EXIT
echo "$program"
