"""The tools a model can call, each described once and rendered for MCP, OpenAI and Anthropic."""
