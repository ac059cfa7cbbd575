"""The shipped cases, one TOML file each."""
