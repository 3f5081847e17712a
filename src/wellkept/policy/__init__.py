"""The rules, as pure functions: no file, no socket, no clock. Time is always an argument."""
