"""Tables of diagnostics: what every domain's table is made of, and entries that several share."""
