"""`python -m toolkit`: the same as the `toolkit` command."""

from toolkit.cli.main import main

if __name__ == "__main__":
    main()
