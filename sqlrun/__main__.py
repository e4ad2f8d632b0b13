"""`python -m sqlrun`. Shell: the command line."""

from sqlrun.cli import main

if __name__ == "__main__":
    main()
