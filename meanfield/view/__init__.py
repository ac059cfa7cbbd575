"""The page of `meanfield view`: a run in one HTML file, with its scripts in web/."""
