#!/bin/bash
# Installs Keycloak, an OpenID provider that others wrote, from Maven Central. The tests of the login run against it. It is
# cached by its version; without Maven and Java 17 or newer it is not installed, and its tests are skipped and named.
set -euo pipefail

version=26.5.6
sha256=fa3dd5df90b9ac006712c2f0991be4e8a6cb30ac538e0439ce2f45fc40f4c692
cache=$HOME/.cache/tagyard
home=$cache/keycloak-$version
[ -d "$home" ] && exit 0
for program in mvn java; do
  command -v "$program" >/dev/null || { echo "setup-keycloak: $program is not installed" >&2; exit 1; }
done
mkdir -p "$cache"
scratch=$(mktemp -d "$cache/.keycloak-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
name=keycloak-quarkus-dist
# Maven gets a repository of its own; else it would keep the archive a second time.
mvn -q -B -Dmaven.repo.local="$scratch/repository" dependency:copy \
  -Dartifact="org.keycloak:$name:$version:tar.gz" -DoutputDirectory="$scratch"
echo "$sha256  $scratch/$name-$version.tar.gz" | sha256sum --check --quiet
tar -xzf "$scratch/$name-$version.tar.gz" -C "$scratch"
# Sets here, once, what can't change while Keycloak runs: otherwise each start would take longer. The database is in
# memory.
JAVA_OPTS='-Xmx384m -XX:+UseSerialGC' "$scratch/keycloak-$version/bin/kc.sh" build --db=dev-mem >"$scratch/build.log" 2>&1 ||
  { cat "$scratch/build.log" >&2; exit 1; }
mv "$scratch/keycloak-$version" "$home"
