"""Entry point of `python -m recollect`, the same program as `recollect`."""

from recollect.cli import main

# Worker processes of the server import this module again, under another name.
if __name__ == "__main__":
    main()
