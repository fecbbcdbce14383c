"""Find credentials in texts and mask them: the one detector of claudeops. Pure.

`find`, `mask`, `mask_counted`, `mask_value` and `mask_bytes` are its door. What it looks for is data (table.toml). One
pass over the text finds the triggers (prefixes, names, commands); a rule is tried only where one stands, anchored and
bounded, so that the time grows with the length alone. A text that is not ASCII is read twice: as it is, and as its
skeleton. It knows nothing of memories, sessions, files and settings.
"""

from claudeops.lib.secrets.encoded import mask_bytes
from claudeops.lib.secrets.masking import Found, find, mask, mask_counted, mask_value

__all__ = ["Found", "find", "mask", "mask_bytes", "mask_counted", "mask_value"]
