"""Tables of diagnostics: the elements of the table of every domain, and entries that several domains share."""
