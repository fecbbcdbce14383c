"""Follow a piece of knowledge from the transcript to the prompt, and say where it ended: `trace` is the door.

`steps` and `ranking` are pure. Reads only, and bounded: the last days, the last sessions.
"""

from claudeops.features.trace.service import trace

__all__ = ["trace"]
