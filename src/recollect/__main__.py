"""Entry point of `python -m recollect`, the same program as `recollect`."""

from recollect.cli import main

main()
