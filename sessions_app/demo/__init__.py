"""The small homelab of `up --demo`: its agents (`setup`), the streams they play (`streams/`), and who wrote those."""
