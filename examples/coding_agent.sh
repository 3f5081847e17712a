#!/bin/sh
# What a coding agent gets from wellkept, in a temporary folder: nothing of yours is read or changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export WELLKEPT_URL="sqlite:///$folder/memory.db"

echo '# The entry for the configuration of Claude Code; without --print, it is written there.'
wellkept mcp install claude --print

echo '# Notes of the project'
wellkept remember 'Run the tests with make test' --tag project
wellkept remember 'Never push to main; open a pull request' --tag rule

echo '# What a hook adds to a prompt'
echo '{"hook_event_name": "UserPromptSubmit", "prompt": "how do I run the tests?"}' | wellkept hook claude

echo '# Long output becomes one line; the agent searches behind it'
line=$(seq 1 3000 | wellkept memory capture --source 'npm test')
echo "$line"
key=$(echo "$line" | sed 's/.*MemoryRef: \([a-z0-9-]*\) .*/\1/')
wellkept memory details show "$key" --grep 2999 --context 0

echo '# Secrets do not get in'
if wellkept remember 'The key is AKIAQYLPMN5HIEXAMP42'; then exit 1; fi
