"""The command line: one file a command, each a thin shell over a library function of the same name."""
