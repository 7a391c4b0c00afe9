#!/usr/bin/env bash
# Decides for the action whether its cache is restored ("cache.sh restore", before helmsrc runs) and saved ("cache.sh save",
# after it), also with the bash 3.2 of macOS. Everything comes in through the environment, nothing of it is evaluated:
#   CACHE      the input cache
#   PULL, HEAD a pull request that the run is about, and the repository that it comes from
#   PRIVATE    true if the repository is private
#   MATCHED    the key that was restored
#   LOCK       the lock file, which need not be there
#   CODE       the exit code of helmsrc
set -euo pipefail

notice() { printf '::notice title=helmsrc::%s\n' "$1"; }

out() { printf '%s\n' "$1" >>"$GITHUB_OUTPUT"; }

# foreign: the run is about what a person without rights in this repository wrote. With pull_request_target and workflow_run
# it has the cache of the base branch, to read and to write.
foreign() { [[ -n ${PULL:-} && ${HEAD:-} != "$GITHUB_REPOSITORY" ]]; }

sums() {
	if command -v sha256sum >/dev/null; then
		sha256sum "$@"
	else
		shasum -a 256 "$@"
	fi
}

# contents names what is in the artifacts directory, whatever run it comes from.
contents() {
	export -f sums
	(cd "$HELMSRC_ARTIFACTS_DIR" && find . -path ./.helmsrc -prune -o -type f -exec bash -c 'sums "$@"' sums {} +) |
		LC_ALL=C sort | sums - | cut -d ' ' -f 1
}

# locked names what the lock file holds, if there is one.
locked() { [[ -f ${LOCK:-} ]] && printf 'lock-%s' "$(sums - <"$LOCK" | cut -d ' ' -f 1)"; }

# publish leaves nothing in the cache that was fetched with a login, or may have been.
publish() {
	[[ -d ${HELMSRC_CACHE_DIR:-} ]] || return 0
	helmsrc cache prune --private --cache-dir "$HELMSRC_CACHE_DIR" 2>/dev/null || rm -rf "$HELMSRC_CACHE_DIR"
}

# private: some artifact may have been fetched with credentials, those of a Secret, of a cloud or of a login.
private() {
	local logins
	grep -rqE '"([a-zA-Z]*[sS]ecretRef)":|"provider":"(aws|azure|gcp|github)"' --include='*.json' "$HELMSRC_ARTIFACTS_DIR/.helmsrc" && return
	for logins in "${DOCKER_CONFIG:-$HOME/.docker}/config.json" "${REGISTRY_AUTH_FILE:-}" \
		"${HELM_REGISTRY_CONFIG:-${XDG_CONFIG_HOME:-$HOME/.config}/helm/registry/config.json}" \
		"${XDG_RUNTIME_DIR:-/nowhere}/containers/auth.json"; do
		if [[ -f $logins ]] && grep -qE '"(auth|identitytoken|credsStore|credHelpers)"' "$logins"; then return; fi
	done
	return 1
}

case ${CACHE:-} in
true) ;;
false) exit 0 ;;
*)
	printf '::error title=helmsrc::%s\n' "the input cache is neither true nor false" >&2
	exit 2
	;;
esac
prefix=helmsrc-v1-$RUNNER_OS
case ${1:-} in
restore)
	if foreign; then
		notice "the cache is left alone: the run is for a pull request from another repository"
		exit 0
	fi
	out "prefix=$prefix-"
	out "key=$prefix-$GITHUB_JOB-$(locked || true)"
	;;
save)
	if foreign || [[ ! -d $HELMSRC_ARTIFACTS_DIR/.helmsrc ]]; then exit 0; fi
	if [[ ${PRIVATE:-} != true ]] && private; then
		notice "the cache is not saved: pull requests from forks can read the caches of a public repository, and charts may have been fetched with credentials"
		exit 0
	fi
	if [[ ${PRIVATE:-} != true ]]; then publish; fi
	# What half a run has left would else stand for the lock from now on.
	if [[ ${CODE:-0} != 0 ]]; then LOCK=; fi
	key=$prefix-$GITHUB_JOB-$(locked || contents)
	if [[ $key != "${MATCHED:-}" ]]; then out "key=$key"; fi
	;;
esac
