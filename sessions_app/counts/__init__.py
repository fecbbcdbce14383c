"""How many sessions ended, of all and of each agent, and how many events were reported by hour.

`tables` says what is counted.
A session counts in the hour in which it ended: its outcome and its cost are stored then. Must not know pages.
"""
