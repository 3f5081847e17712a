"""Tools a model can call, defined once and rendered for MCP, OpenAI and Anthropic."""
