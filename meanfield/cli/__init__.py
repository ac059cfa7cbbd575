"""Command line: parser, options and commands."""
