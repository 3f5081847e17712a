"""Entry point of `python -m wellkept`, the same program as `wellkept`."""

from wellkept.cli import main

# Worker processes of the server import this module again, under another name.
if __name__ == "__main__":
    main()
