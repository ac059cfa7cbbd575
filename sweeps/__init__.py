"""The shipped sweeps, one TOML file each."""
