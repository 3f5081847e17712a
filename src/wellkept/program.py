"""The name of this program, and the one that data of version 0.2 and before carries."""

PROGRAM = "wellkept"

FORMER_NAME = "recollect"
"""Found in exports, backups, API keys and names of embedders, and in the policies of PostgreSQL databases."""
