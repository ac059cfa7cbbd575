"""The shipped cases, one TOML file each; `seconds.json` has how long each runs (benchmarks/cases.py)."""
