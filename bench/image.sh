#!/usr/bin/env bash
# Builds both images of the Containerfile and tries each as its user has it: not as root, in an empty folder, without a
# network. bench/image.sh [OPTION ...]: options of the build, such as --build-arg BASE=IMAGE. It needs podman, docker or
# buildah (or what BUILDER names); the last one is enough where nobody may start a container.
set -euo pipefail
cd "$(dirname "$0")/.."
builder=${BUILDER:-$(command -v podman || command -v docker || command -v buildah)}

# Runs a line of shell in a new container of an image.
inside() {
  if [ "${builder##*/}" = buildah ]; then
    local container
    container=$(buildah from --pull=never "localhost/$1")
    # A chroot has the network of whoever starts it.
    unshare --net buildah run --isolation chroot "$container" -- sh -c "$2"
    buildah rm "$container" >/dev/null
  else
    "$builder" run --rm --network none --entrypoint sh "$1" -c "$2"
  fi
}

# The container expands them.
# shellcheck disable=SC2016
tried='test "$(id -u)" = 10001 && test ! -w /opt/judge && judge doctor && judge demo | grep "INCONCLUSIVE, wkappa"'
# shellcheck disable=SC2016
model='judge demo . >/dev/null && judge run --runs examples/runs --criteria naturalness --limit 2 --out two --replace \
  && test "$(grep -c local/qwen2.5-1.5b two/judgments.jsonl)" = 2'
for target in core all; do
  "$builder" build "$@" --file Containerfile --target "$target" --tag "trec-judge:$target" .
  inside "trec-judge:$target" "$tried"
done
inside trec-judge:all "$model"
"$builder" images | grep trec-judge
