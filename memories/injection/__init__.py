"""The block of memories in a session's prompt: its budget (`budget`, pure) and its choice of memories (`ops`).

The door is `ops.build`. It reads only; the session stores the receipt.
"""
