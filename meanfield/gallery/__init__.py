"""Statements of the literature, one entry each: statement, source, expected number, number found here, and verdict.

`python -m meanfield.gallery` runs all entries and prints the table of docs/statements.md.
`python -m meanfield.gallery NAME` runs one entry.
"""
