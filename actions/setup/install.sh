#!/usr/bin/env bash
# Installs a release of helmsrc on a runner of GitHub Actions, also with the bash 3.2 of macOS. The archive is compared
# with the checksums of the release, and its provenance is checked. Everything comes in through the environment, nothing
# of it is evaluated:
#   VERSION    v1.2.3, 1.2.3, latest, or nothing for the version of the action
#   ACTION_REF what the action was called by; a version, a branch or a commit
#   VERIFY     auto, required or off: the check of the provenance
set -euo pipefail
umask 022

repository=helmsrc/helmsrc
releases=${RELEASES_URL:-https://github.com/$repository/releases}
workflow=$repository/.github/workflows/release.yml

fail() {
	printf '::error title=helmsrc::%s\n' "$1" >&2
	exit 1
}

is_version() { [[ $1 =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; }

get() { curl --proto '=https' --tlsv1.2 --fail --silent --show-error --location --retry 3 --max-time 300 "$@"; }

# The version that was asked for, with a v. Nothing else goes into URLs and names of files.
wanted() {
	local version=${VERSION:-}
	if [[ -z $version ]]; then
		version=latest
		if is_version "${ACTION_REF:-}"; then version=$ACTION_REF; fi
	fi
	if [[ $version == latest ]]; then
		version=$(get --head --output /dev/null --write-out '%{url_effective}' "$releases/latest") ||
			fail "the latest version could not be found out"
		version=${version##*/}
	fi
	[[ $version == v* ]] || version=v$version
	is_version "$version" || fail "the input version is neither latest nor a version such as v1.2.3"
	printf '%s\n' "$version"
}

platform() {
	local os arch
	case ${RUNNER_OS:-} in
	Linux) os=linux ;;
	macOS) os=darwin ;;
	Windows) os=windows ;;
	*) fail "there is no helmsrc for the system '${RUNNER_OS:-}'" ;;
	esac
	case ${RUNNER_ARCH:-} in
	X64) arch=amd64 ;;
	ARM64) arch=arm64 ;;
	*) fail "there is no helmsrc for the architecture '${RUNNER_ARCH:-}'" ;;
	esac
	printf '%s_%s\n' "$os" "$arch"
}

sha256() {
	if command -v sha256sum >/dev/null; then
		sha256sum <"$1"
	else
		shasum -a 256 <"$1"
	fi | cut -d ' ' -f 1
}

# check_sum ARCHIVE compares an archive in the current directory with checksums.txt.
check_sum() {
	local sum='' got name line
	while read -r line name; do
		if [[ ${name#\*} == "$1" ]]; then sum=$line; fi
	done <checksums.txt
	[[ $sum =~ ^[0-9a-f]{64}$ ]] || fail "the release has no checksum for $1"
	got=$(sha256 "$1")
	[[ $got == "$sum" ]] || fail "the checksum of $1 is $got, but the release says $sum"
	printf '%s has the checksum of the release\n' "$1"
}

# check_provenance ARCHIVE asks GitHub's own program, or cosign where that is not at hand.
check_provenance() {
	if [[ $verify == off ]]; then return; fi
	if command -v gh >/dev/null && [[ -n ${GH_TOKEN:-} ]]; then
		gh attestation verify "$1" --repo "$repository" --signer-workflow "$workflow" ||
			fail "the provenance of $1 was refused"
	elif command -v cosign >/dev/null; then
		get --output checksums.txt.sigstore.json "$releases/download/$version/checksums.txt.sigstore.json" ||
			fail "the release has no signature of its checksums"
		cosign verify-blob checksums.txt --new-bundle-format --bundle checksums.txt.sigstore.json \
			--certificate-identity "https://github.com/$workflow@refs/tags/$version" \
			--certificate-oidc-issuer https://token.actions.githubusercontent.com ||
			fail "the signature of the checksums was refused"
	elif [[ $verify == required ]]; then
		fail "the provenance cannot be checked: neither gh with a token nor cosign is there"
	else
		printf '::warning title=helmsrc::%s\n' "the provenance was not checked: neither gh with a token nor cosign is there"
	fi
}

# install_release puts the program where the runner keeps its tools, whole or not at all.
install_release() {
	local archive=helmsrc_${version#v}_$target.tar.gz
	if [[ $program == *.exe ]]; then archive=${archive%.tar.gz}.zip; fi
	get --output "$archive" "$releases/download/$version/$archive" || fail "there is no $archive in release $version"
	get --output checksums.txt "$releases/download/$version/checksums.txt" || fail "release $version has no checksums"
	check_sum "$archive"
	check_provenance "$archive"
	mkdir bin
	case $archive in
	*.zip) unzip -q -j "$archive" "$program" -d bin ;;
	*) tar -xzf "$archive" -C bin "$program" ;;
	esac
	chmod 755 "bin/$program"
	mkdir -p "$(dirname "$home")"
	# Another job of this runner may have been faster.
	mv -T bin "$home" 2>/dev/null || mv bin "$home" 2>/dev/null || [[ -x $home/$program ]]
}

verify=${VERIFY:-auto}
case $verify in
auto | required | off) ;;
*) fail "the input verify is not one of auto, required, off" ;;
esac
version=$(wanted)
target=$(platform)
program=helmsrc
if [[ $target == windows_* ]]; then program=helmsrc.exe; fi
home=${RUNNER_TOOL_CACHE:-$RUNNER_TEMP}/helmsrc/${version#v}/$target
if [[ ! -d $home ]]; then
	work=$(mktemp -d "$RUNNER_TEMP/helmsrc.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	install_release
fi
printf '%s\n' "$home" >>"$GITHUB_PATH"
{
	printf 'version=%s\n' "$version"
	printf 'path=%s\n' "$home"
} >>"$GITHUB_OUTPUT"
"$home/$program" version
