"""The sample homelab of `up --demo`: its agents (`setup`) and the recorded streams they play (`streams/`)."""
