"""The command line: parser, options, and what each command does."""
