"""Learn from the runs of a project by rules: what several failed runs had in common, what a retry did differently.

`rules` decides over summarised runs (pure), `runs` reads them, `lessons` stores what was found as memories.
"""
