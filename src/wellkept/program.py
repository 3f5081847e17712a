"""The name of this program, the one that data of version 0.2 and before carries, and how to install more of it."""

PROGRAM = "wellkept"

FORMER_NAME = "recollect"
"""Found in exports, backups, API keys and names of embedders, and in the policies of PostgreSQL databases."""


def advise_install(extra: str) -> str:
    """Return the commands that install an extra: of an installed package, and in a clone."""
    return f"run: pip install '{PROGRAM}[{extra}]' (in a clone: pip install '.[{extra}]')"
