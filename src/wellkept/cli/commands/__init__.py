"""The groups of commands. Each module holds commands, what they print, and `COMMANDS`, registered by `cli.app`."""
