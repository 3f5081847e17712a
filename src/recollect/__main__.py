"""`python -m recollect` is the same program as `recollect`."""

from recollect.cli import main

main()
