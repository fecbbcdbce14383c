"""Credit where it is due: which memories a session used, and what its end says about them.

`uses` finds them in what the agent says (pure), `notes` keeps those that the session was shown, `outcome` credits the
session's end to them.
"""
