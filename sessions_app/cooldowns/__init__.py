"""Limits on remediations: how often a service may be restarted or redeployed. The database is the one authority."""
