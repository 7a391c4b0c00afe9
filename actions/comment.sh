#!/usr/bin/env bash
# Puts what helmsrc plan reported into a comment on the pull request, or into the one that an earlier run has left there.
# A comment that cannot be written is a warning: the plan itself is in the summary of the job.
set -euo pipefail

warn() {
	printf '::warning title=helmsrc::%s\n' "$1" >&2
	exit 0
}

if [[ ! -s $FILE ]]; then exit 0; fi # there is no plan
if [[ -z ${PULL:-} ]]; then
	printf '::notice title=helmsrc::there is no pull request to comment on\n' >&2
	exit 0
fi
[[ $PULL =~ ^[0-9]+$ ]] || warn "the number of the pull request must consist of digits"
[[ ${NAME:-} =~ ^[A-Za-z0-9._-]+$ ]] || warn "the input comment-name may have letters, digits, dots, dashes and underscores"
[[ -n ${GH_TOKEN:-} ]] || warn "there is no token to comment with"
for tool in curl jq; do
	command -v "$tool" >/dev/null || warn "$tool is missing, which commenting needs"
done

work=$(mktemp -d "$RUNNER_TEMP/comment.XXXXXX")
trap 'rm -rf "$work"' EXIT

# api METHOD PATH [FILE] answers on stdout. The token goes in through stdin, where no list of processes shows it.
api() {
	local method=$1 path=$2 more=(--retry 2)
	if [[ -n ${3:-} ]]; then more=(--data-binary "@$3" --header 'Content-Type: application/json'); fi
	printf 'header = "Authorization: Bearer %s"\n' "$GH_TOKEN" |
		curl --config - --fail --silent --show-error --max-time 60 --request "$method" \
			--header 'Accept: application/vnd.github+json' "${more[@]}" "$GITHUB_API_URL$path" 2>"$work/error"
}

mark="<!-- helmsrc $NAME -->"
jq --null-input --arg mark "$mark" --rawfile text "$FILE" '{body: ($mark + "\n" + $text)}' >"$work/body"

# The job's own token has no user, and comments as this one.
me=$(api GET /user | jq --raw-output .login) || me='github-actions[bot]'
comments=/repos/$GITHUB_REPOSITORY/issues/$PULL/comments
id=
for page in {1..30}; do
	api GET "$comments?per_page=100&page=$page" >"$work/page" || warn "the comments of the pull request cannot be read: $(tail -n 1 "$work/error")"
	id=$(jq --raw-output --arg mark "$mark" --arg me "$me" \
		'[.[] | select(.user.login == $me and (.body | startswith($mark)))][0].id // empty' "$work/page")
	if [[ -n $id || $(jq length "$work/page") -lt 100 ]]; then break; fi
done
if [[ -n $id ]]; then
	api PATCH "/repos/$GITHUB_REPOSITORY/issues/comments/$id" "$work/body" >/dev/null ||
		warn "the comment cannot be changed: $(tail -n 1 "$work/error")"
else
	api POST "$comments" "$work/body" >/dev/null ||
		warn "the comment cannot be written: $(tail -n 1 "$work/error"). The job needs the permission 'pull-requests: write', which pull requests from forks never give"
fi
