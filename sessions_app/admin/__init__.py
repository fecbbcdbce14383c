"""The Django admin of what agents do. Imports no other surface; the memories' pages are linked by name."""

from sessions_app.admin.agent import AgentAdmin
from sessions_app.admin.history import (
    CooldownActionAdmin,
    CooldownClearanceAdmin,
    EventAdmin,
    InjectionReceiptAdmin,
    LogEntryAdmin,
    ServiceCheckAdmin,
    WorkerHeartbeatAdmin,
)
from sessions_app.admin.session import SessionAdmin

__all__ = [
    "AgentAdmin",
    "CooldownActionAdmin",
    "CooldownClearanceAdmin",
    "EventAdmin",
    "InjectionReceiptAdmin",
    "LogEntryAdmin",
    "ServiceCheckAdmin",
    "SessionAdmin",
    "WorkerHeartbeatAdmin",
]
