"""The candidates of a statement: the known memories that it is compared with, and how it relates to each.

`generate` selects them by recall's two searches, within the statement's scope. `relate` compares before the store's
transaction, and again under its lock where something changed. Writes nothing.
"""
