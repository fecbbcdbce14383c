"""Cooldowns: limits on how often a service may be restarted or redeployed.

Entry point: `limits` (check, list, clear). The database is the only authority; nothing is cached. Must not know how a
session runs, nor pages or requests.
"""
