"""Forget on request: remove a text from everything that is stored, and keep a receipt that holds none of it."""
