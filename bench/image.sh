#!/usr/bin/env bash
# Builds both images of the Containerfile and tries each as its user has it: not as root, in an empty folder, without a
# network. bench/image.sh [OPTION ...]: options of the build, such as --build-arg BASE=IMAGE. The first of podman, docker
# and buildah that builds the stage `base` is taken (or what BUILDER names). Where none does, because no service runs or
# no base image can be fetched, the steps are carried out in an empty environment of Python.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp --directory)
trap 'chmod --recursive u+w "$place"; rm -rf "$place"' EXIT

builder=
for candidate in ${BUILDER:-podman docker buildah}; do
  if ! command -v "$candidate" >/dev/null; then
    echo "$candidate: not installed"
  elif "$candidate" build "$@" --file Containerfile --target base --tag trec-judge:base . >"$place/log" 2>&1; then
    builder=$candidate
    break
  else
    echo "$candidate: cannot build the stage base: $(grep -v '^ *$' "$place/log" | tail -n 1)"
  fi
done

# Makes what a target holds: an image, or an environment in $place/TARGET.
make_target() {
  if [ -n "$builder" ]; then
    "$builder" build "$@" --file Containerfile --target "$target" --tag "trec-judge:$target" .
    return
  fi
  local source=$place/source/$target extras=
  mkdir -p "$source"
  # The files that the Containerfile copies.
  sed -n 's,^COPY \([^-].*\) /source.*,\1,p' Containerfile | xargs cp --recursive --target-directory "$source"
  python3 -m venv "$place/$target/judge"
  [ "$target" = core ] || extras='[all]'
  "$place/$target/judge/bin/pip" install --quiet --no-cache-dir "$source$extras"
  if [ "$target" = all ]; then
    JUDGE_CACHE=$place/$target/weights "$place/$target/judge/bin/judge" models pull qwen2.5-1.5b
  fi
  chmod --recursive a-w "$place/$target/judge"
}

# Runs a line of shell in a new container of the target's image, or in its environment.
inside() {
  if [ -z "$builder" ]; then
    local empty
    empty=$(mktemp --directory --tmpdir="$place")
    (cd "$empty" && unshare --user --map-user=10001 --map-group=10001 --net \
      env --ignore-environment PATH="$place/$target/judge/bin:$PATH" PYTHONUTF8=1 HOME="$empty" \
      JUDGE_CACHE="$place/$target/weights" sh -c "$1")
  elif [ "$builder" = buildah ]; then
    local container
    container=$(buildah from --pull=never "localhost/trec-judge:$target")
    # A chroot has the network of whoever starts it.
    unshare --net buildah run --isolation chroot "$container" -- sh -c "$1"
    buildah rm "$container" >/dev/null
  else
    "$builder" run --rm --network none --entrypoint sh "trec-judge:$target" -c "$1"
  fi
}

# The container expands them.
# shellcheck disable=SC2016
tried='test "$(id -u)" = 10001 && test ! -w "$(dirname "$(command -v judge)")" && judge doctor \
  && judge demo | grep "INCONCLUSIVE, wkappa"'
# shellcheck disable=SC2016
model='judge demo . >/dev/null && judge run --runs examples/runs --criteria naturalness --limit 2 --out two --replace \
  && test "$(grep -c local/qwen2.5-1.5b two/judgments.jsonl)" = 2'
[ -n "$builder" ] || echo "no builder works here: the steps run in an empty environment, and no image is made"
for target in core all; do
  make_target "$@"
  inside "$tried"
done
inside "$model"
if [ -n "$builder" ]; then
  "$builder" images | grep trec-judge
else
  du --summarize --human-readable "$place"/core/judge "$place"/all/judge "$place"/all/weights | sed "s,$place/,,"
fi
