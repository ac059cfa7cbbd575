"""A case file from TOML to a frozen, checked Case: loading, overrides, combinations, validation, messages."""
