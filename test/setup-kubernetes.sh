#!/bin/bash
# Builds the programs of a Kubernetes cluster, and the tools that check the chart, from their Go modules at the versions of
# test/kubernetes/modules. From nothing it takes about 15 minutes on two cores, 4 GB of Go's caches and 1 GB for the
# programs, which are cached under a hash of those versions. The output ends with their folder. Without Go, nothing is
# built, and the tests that need a cluster are skipped and named.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
modules=$here/kubernetes/modules
key=$(cat "${BASH_SOURCE[0]}" "$modules"/*/go.mod "$modules"/*/go.sum | sha256sum | cut -c1-16)
programs=$HOME/.cache/tagyard/kubernetes-$key
if [ -d "$programs" ]; then
  echo "$programs"
  exit 0
fi
command -v go >/dev/null || { echo "setup-kubernetes: go is not installed" >&2; exit 1; }

mkdir -p "$HOME/.cache/tagyard"
built=$(mktemp -d "$HOME/.cache/tagyard/kubernetes-building-XXXXXX")
trap 'rm -rf "$built"' EXIT
mkdir "$built/cni"
export CGO_ENABLED=0

# version FOLDER MODULE: the version of MODULE that the module in FOLDER requires.
version() { sed -nE "s#^(require)?[[:space:]]*$2 (v[^ ]+).*#\2#p" "$modules/$1/go.mod" | head -n 1; }

# build NAME FOLDER [LDFLAGS]: builds into FOLDER the tools that the module in NAME lists.
build() {
  local from=$SECONDS
  (cd "$modules/$1" && go build -mod=readonly -trimpath -ldflags "-s -w ${3:-}" -o "$built/$2" tool)
  echo "setup-kubernetes: $1 in $((SECONDS - from)) s" >&2
}

kubernetes=$(version kubernetes k8s.io/kubernetes)
minor=${kubernetes#v1.}
stamp="-X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/component-base/version.gitMajor=1"
build kubernetes "" "$stamp -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
build etcd etcd
containerd=github.com/containerd/containerd/v2
build containerd "" "-X $containerd/version.Version=$(version containerd $containerd)"
build cni cni/
for name in kwok helm coredns metrics-server kube-score; do build "$name" ""; done

mv "$built" "$programs"
echo "$programs"
