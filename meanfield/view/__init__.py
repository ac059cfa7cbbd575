"""Page of `meanfield view` and `watch`: a run in one HTML file, with scripts in web/."""
