"""The Model Context Protocol: an agent's memory as tools, resources and prompts for any host that speaks it.

`protocol` answers requests, the same over every transport; `stdio` and `http` are the transports. They need the extra
`mcp`; `mounting` does not, so that the server also runs without it.
"""
