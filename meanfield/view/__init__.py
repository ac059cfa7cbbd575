"""The page of `meanfield view` and `watch`: a run in one HTML file, with its scripts in web/."""
