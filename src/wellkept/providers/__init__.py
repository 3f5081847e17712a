"""Implementations that reach outside the process: embedders, language models and files. Only they open sockets."""
