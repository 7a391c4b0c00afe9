#!/usr/bin/env bash
# Installs a release of helmsrc on a runner of GitHub Actions, also with the bash 3.2 of macOS. The archive is compared
# with the checksums of the release, and its provenance is checked. The tool cache outlives a job, so anything may lie in
# it: only the archive is kept there, it is checked for each job like a download, and the program is unpacked from it into
# a directory of the job. Everything comes in through the environment, nothing of it is evaluated:
#   VERSION    v1.2.3, 1.2.3, latest, or nothing for the version of the action
#   ACTION_REF what the action was called by; a version, a branch or a commit
#   VERIFY     auto, required or off: the check of the provenance
set -euo pipefail
umask 022

repository=helmsrc/helmsrc
releases=${RELEASES_URL:-https://github.com/$repository/releases}

fail() {
	printf '::error title=helmsrc::%s\n' "$1" >&2
	exit 1
}

is_version() { [[ $1 =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; }

get() { curl --proto '=https' --tlsv1.2 --fail --silent --show-error --location --retry 3 --max-time 300 "$@"; }

# The requested version, with a v. Nothing else goes into URLs and names of files.
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

# release_sum ARCHIVE prints the checksum that checksums.txt has for it.
release_sum() {
	local sum='' name line
	while read -r line name; do
		if [[ ${name#\*} == "$1" ]]; then sum=$line; fi
	done <checksums.txt
	[[ $sum =~ ^[0-9a-f]{64}$ ]] || fail "the release has no checksum for $1"
	printf '%s\n' "$sum"
}

# take ARCHIVE brings an archive into the current directory, from the tool cache if that has it with the checksum of the
# release, else from the release.
take() {
	local sum got
	get --output checksums.txt "$releases/download/$version/checksums.txt" || fail "release $version has no checksums"
	sum=$(release_sum "$1")
	if [[ -f $kept/$1 && ! -L $kept/$1 ]] && cp "$kept/$1" "$1" && [[ $(sha256 "$1") == "$sum" ]]; then
		printf '%s is in the tool cache, with the checksum of the release\n' "$1"
		return
	fi
	get --output "$1" "$releases/download/$version/$1" || fail "there is no $1 in release $version"
	got=$(sha256 "$1")
	[[ $got == "$sum" ]] || fail "the checksum of $1 is $got, but the release says $sum"
	printf '%s has the checksum of the release\n' "$1"
}

# keep ARCHIVE leaves an archive that was checked in the tool cache. A cache that cannot be written is no failure.
keep() {
	if cmp -s "$1" "$kept/$1"; then return; fi
	if mkdir -p "$kept" && cp "$1" "$kept/.$1.$$" && mv -f "$kept/.$1.$$" "$kept/$1"; then return; fi
	rm -f "$kept/.$1.$$"
	printf '::warning title=helmsrc::%s\n' "the tool cache cannot be written, so the next job downloads $1 again"
}

# check_provenance ARCHIVE asks GitHub's own program, or cosign where that is not available. Both accept only what the
# release workflow built for the tag of this very version, so that no other release can take its place.
check_provenance() {
	if [[ $verify == off ]]; then return; fi
	if command -v gh >/dev/null && [[ -n ${GH_TOKEN:-} ]]; then
		gh attestation verify "$1" --repo "$repository" --cert-identity "$identity" --deny-self-hosted-runners ||
			fail "the provenance of $1 was refused"
	elif command -v cosign >/dev/null; then
		get --output checksums.txt.sigstore.json "$releases/download/$version/checksums.txt.sigstore.json" ||
			fail "the release has no signature of its checksums"
		cosign verify-blob checksums.txt --new-bundle-format --bundle checksums.txt.sigstore.json \
			--certificate-identity "$identity" \
			--certificate-oidc-issuer https://token.actions.githubusercontent.com ||
			fail "the signature of the checksums was refused"
	elif [[ $verify == required ]]; then
		fail "the provenance cannot be checked: neither gh with a token nor cosign is there"
	else
		printf '::warning title=helmsrc::%s\n' "the provenance was not checked: neither gh with a token nor cosign is there"
	fi
}

# install_release puts the program into the job's own directory.
install_release() {
	local archive=helmsrc_${version#v}_$target.tar.gz
	if [[ $program == *.exe ]]; then archive=${archive%.tar.gz}.zip; fi
	take "$archive"
	check_provenance "$archive"
	mkdir bin
	case $archive in
	*.zip) unzip -q -j "$archive" "$program" -d bin ;;
	*) tar -xzf "$archive" -C bin "$program" ;;
	esac
	chmod 755 "bin/$program"
	keep "$archive"
	rm -rf "$home"
	mkdir -p "$(dirname "$home")"
	mv bin "$home"
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
identity=https://github.com/$repository/.github/workflows/release.yml@refs/tags/$version
kept=${RUNNER_TOOL_CACHE:-$RUNNER_TEMP}/helmsrc/${version#v}/archives
home=$RUNNER_TEMP/helmsrc/program/${version#v}/$target
work=$(mktemp -d "$RUNNER_TEMP/helmsrc.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
install_release
printf '%s\n' "$home" >>"$GITHUB_PATH"
{
	printf 'version=%s\n' "$version"
	printf 'path=%s\n' "$home"
} >>"$GITHUB_OUTPUT"
"$home/$program" version
