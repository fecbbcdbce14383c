"""From an agent's text to statements, and the gate that judges them. Pure: knows no database.

`markers` finds statements, `statement` makes them valid, `gate` answers allow, hold or discard.
"""
