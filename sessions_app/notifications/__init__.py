"""Tell a person's task list what waits for a person: one item for each proposal, by a webhook."""

from sessions_app.notifications.send import Sent, send_due

__all__ = ["Sent", "send_due"]
