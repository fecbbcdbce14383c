"""Tell a person that a credential in their input was masked."""

from __future__ import annotations

from claudeops.lib.secrets import mask_counted


def masked_note(*texts: str) -> str:
    """Return a sentence with the kinds of credentials in `texts`, with a space before it; "" when there is none."""
    kinds = sorted({kind for text in texts for kind in mask_counted(text)[1]})
    return f" What looks like a credential was masked: {', '.join(kinds)}." if kinds else ""
