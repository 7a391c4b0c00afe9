#!/usr/bin/env bash
# Runs helmsrc for the action, also with the bash 3.2 of macOS. The inputs come in through the environment, lists with one
# value per line, and reach the program as arguments of its command line: nothing is evaluated.
set -euo pipefail

fail() {
	printf '::error title=helmsrc::%s\n' "$1" >&2
	exit 2
}

# each PREFIX LIST appends an argument for each line that is not empty.
each() {
	local line
	while IFS= read -r line || [[ -n $line ]]; do
		line=${line%$'\r'}
		if [[ -n $line ]]; then arguments+=("$1$line"); fi
	done <<<"$2"
}

case ${COMMAND:-} in
validate | fetch | resolve | verify | plan | lock) ;;
*) fail "the input command is not one of validate, fetch, resolve, verify, plan, lock" ;;
esac
for pair in "recursive=${RECURSIVE:-}" "sarif=${SARIF:-}" "comment=${COMMENT:-}"; do
	case ${pair#*=} in
	true | false) ;;
	*) fail "the input ${pair%%=*} is neither true nor false" ;;
	esac
done

if [[ $COMMENT == true && $COMMAND != plan ]]; then fail "the input comment is for the command plan"; fi

arguments=()
if [[ $COMMAND == lock ]]; then arguments+=(--check); fi # what a job writes is gone when it ends
if [[ $RECURSIVE == true ]]; then arguments+=(--recursive); fi
each --filename= "${FILES:-}"
each --report= "${REPORTS:-}"
sarif=
if [[ $SARIF == true ]]; then
	sarif=$RUNNER_TEMP/helmsrc.sarif
	rm -f "$sarif"
	arguments+=("--report=sarif=$sarif")
fi
comment=$RUNNER_TEMP/helmsrc-comment.md
rm -f "$comment"
if [[ $COMMENT == true ]]; then
	arguments+=("--report=markdown=$comment")
fi
each '' "${ARGS:-}"
arguments+=(--)
each '' "${OBJECTS:-}"

code=0
helmsrc "$COMMAND" "${arguments[@]}" || code=$?
{
	printf 'exit-code=%s\n' "$code"
	# Code scanning refuses the report of a run that never began, or did not come to its end.
	if [[ -n $sarif && -s $sarif && $(<"$sarif") != *'"executionSuccessful": false'* ]]; then
		printf 'sarif-file=%s\n' "$sarif"
	fi
} >>"$GITHUB_OUTPUT"
exit "$code"
