"""Published statements, an entry each: the statement, its source, the number found beside the published one, a verdict.

`python -m gallery` runs all entries and prints the table, which docs/statements.md holds; `python -m gallery NAME` one.
"""
