#!/usr/bin/env bash
# Posts the report on the pull request, or brings the comment of an earlier run up to date. Whoever may not write, as
# the token of a fork, gets a warning: the verdict is not in the comment.
# Reads REPORT_MARKDOWN, PULL_REQUEST, COMMENT_NAME, GITHUB_TOKEN, GITHUB_API_URL, GITHUB_REPOSITORY.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/messages.sh"

# The first line of every report that gpuemu writes as Markdown.
marker='<!-- gpuemu-report -->'
# Several projects of a repository have a comment each.
key="<!-- gpuemu-comment $COMMENT_NAME -->"
# GitHub takes comments of up to 65,536 characters.
most_characters=65000

[[ $(head -n 1 "$REPORT_MARKDOWN") == "$marker" ]] || refuse "$REPORT_MARKDOWN does not begin with $marker"
[[ $PULL_REQUEST =~ ^[0-9]+$ ]] || refuse "'$PULL_REQUEST' is not the number of a pull request"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
api=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY

# request METHOD URL [CURL ARGUMENTS]: the answer is in $scratch/answer; says what went wrong and ends the script where
# it was refused. The token is read from standard input: arguments are seen by every process.
request() {
  local method=$1 url=$2 code
  shift 2
  code=$(curl --silent --show-error --max-time 60 --request "$method" --config - \
    --header 'Accept: application/vnd.github+json' --header 'X-GitHub-Api-Version: 2022-11-28' \
    --output "$scratch/answer" --write-out '%{http_code}' "$@" "$url" \
    <<<"header = \"Authorization: Bearer $GITHUB_TOKEN\"") || code="no answer"
  if [[ $code != 2?? ]]; then
    local reason
    reason=$(jq -r '.message? // empty' "$scratch/answer" 2>/dev/null) || reason=
    message warning "the report was not posted on the pull request: $method $url: $code ${reason}
A token of a fork may not write; others need the permission 'pull-requests: write'. The report is in the summary of the run."
    exit 0
  fi
}

comment=
page=1
while [[ -z $comment ]]; do
  request GET "$api/issues/$PULL_REQUEST/comments?per_page=100&page=$page" --retry 3
  comment=$(jq -r --arg marker "$marker" --arg key "$key" \
    '[.[] | select(.body | startswith($marker) and contains($key)) | .id] | first // empty' "$scratch/answer")
  [[ $(jq length "$scratch/answer") == 100 ]] || break
  page=$((page + 1))
done

jq --raw-input --slurp --arg key "$key" --argjson most "$most_characters" '
  { body: ((if length > $most then .[:$most] + "\n\n*The rest is in the artifact of the run.*\n" else . end) + "\n" + $key) }
' "$REPORT_MARKDOWN" >"$scratch/body"

send=(--header 'Content-Type: application/json' --data-binary "@$scratch/body")
if [[ -n $comment ]]; then
  request PATCH "$api/issues/comments/$comment" "${send[@]}"
else
  request POST "$api/issues/$PULL_REQUEST/comments" "${send[@]}"
fi
echo "the report is on the pull request: $(jq -r '.html_url? // empty' "$scratch/answer")"
