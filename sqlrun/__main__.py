"""`python -m sqlrun`. Shell: the command line."""

from sqlrun.front import main

if __name__ == "__main__":
    main()
