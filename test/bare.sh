#!/bin/bash
# What a newcomer's machine makes of the README's two commands: a Debian root with git, certificates, Node and npm, and
# nothing else; a fresh clone of this checkout in it; both commands word for word. Needs root, and Debian's mirror.
#
# BARE_CACHE  the folder of the root, kept between runs (~/.cache/tagyard)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

start='npm ci && npm start'
tests='npm ci && npm test'
for command in "$start" "$tests"; do
  grep -qxF "$command" README.md || { echo "bare: README.md has no command \"$command\"" >&2; exit 1; }
done

release=$(. /etc/os-release && echo "$VERSION_CODENAME")
node=$(readlink -f "$(command -v node)")
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
root=${BARE_CACHE:-$HOME/.cache/tagyard}/bare-$release-$("$node" --version)-npm$(npm --version)

if [ ! -e "$root.made" ]; then
  command -v debootstrap >/dev/null || { apt-get update -q; apt-get install -q -y --no-install-recommends debootstrap; }
  # The mirror of this machine's own sources.
  mirror=$(apt-cache policy base-files | grep -oE 'https?://[^ ]+' | head -n 1)
  rm -rf "$root"
  mkdir -p "$root"
  debootstrap --variant=minbase --include=git,ca-certificates "$release" "$root" "$mirror" >/dev/null
  cp "$node" "$root/usr/bin/node"
  mkdir -p "$root/usr/lib/node_modules"
  cp -a "$npm" "$root/usr/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/bin/npx"
  touch "$root.made"
fi

# How this machine reaches the registry of packages: its names, certificates and npm's own configuration.
cp /etc/resolv.conf /etc/hosts "$root/etc/"
rm -rf "$root/etc/ssl/certs"
cp -aL /etc/ssl/certs "$root/etc/ssl/"
global=$(npm config get globalconfig)
[ ! -f "$global" ] || install -D -m 644 "$global" "$root/${global#/}"
[ ! -f "$HOME/.npmrc" ] || install -m 600 "$HOME/.npmrc" "$root/srv/.npmrc"
registry=$(env | grep -iE '^(npm_config_|NODE_EXTRA_CA_CERTS=|SSL_CERT|https?_proxy=|no_proxy=)' || true)
extra=$(sed -n 's/^NODE_EXTRA_CA_CERTS=//p' <<<"$registry")
[ ! -f "$extra" ] || install -D -m 644 "$extra" "$root/${extra#/}"

rm -rf "$root/srv/tagyard" "$root/srv/.cache" "$root/srv/.npm"
git clone -q "file://$PWD" "$root/srv/tagyard"

# In process and mount namespaces of their own: nothing that is started or mounted there outlives this script.
in_root() {
  unshare --mount --pid --fork --kill-child bash -c '
    mount -t proc proc "$0/proc"
    mount --rbind /dev "$0/dev"
    mount -t tmpfs tmpfs "$0/tmp"
    exec chroot "$0" /usr/bin/env -i HOME=/srv TERM=dumb LANG=C.UTF-8 CI="${CI:-}" \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${@:2}" bash -euc "cd /srv/tagyard; $1"
  ' "$root" "$1" ${registry:+$registry}
}

echo "== bare: $start"
# `script` is the terminal: its Ctrl-C (the byte 3) reaches what a person's would.
in_root '
  mkfifo /tmp/keys
  exec 3<>/tmp/keys
  script -qefc "'"$start"'" /tmp/start.log </tmp/keys &
  terminal=$!
  until [ -x node_modules/.bin/node ] || ! kill -0 "$terminal"; do sleep 1; done
  npx node test/support/bare/walk.ts /tmp/start.log
  printf "\003" >&3
  wait "$terminal" || true
  # In this namespace, every process but this shell belonged to the instance. Only builtins: they start none.
  left=
  for process in /proc/[0-9]*; do
    [ "$process" = "/proc/$$" ] || { read -rd "" name <"$process/cmdline" || true; left+=" $name"; }
  done
  [ -z "$left" ] || { echo "bare: Ctrl-C left processes: $left" >&2; exit 1; }
  echo "bare: Ctrl-C left no process"'

echo "== bare: $tests"
in_root "$tests"
