"""The Django admin of agents, sessions and their records. It imports no other surface."""

from sessions_app.admin.agent import AgentAdmin
from sessions_app.admin.history import (
    CooldownActionAdmin,
    CooldownClearanceAdmin,
    EventAdmin,
    HookHeardAdmin,
    HookReceiptAdmin,
    InjectionReceiptAdmin,
    LogEntryAdmin,
    ServiceCheckAdmin,
    WorkerHeartbeatAdmin,
)
from sessions_app.admin.purge import PurgeAdmin
from sessions_app.admin.session import SessionAdmin

__all__ = [
    "AgentAdmin",
    "CooldownActionAdmin",
    "CooldownClearanceAdmin",
    "EventAdmin",
    "HookHeardAdmin",
    "HookReceiptAdmin",
    "InjectionReceiptAdmin",
    "LogEntryAdmin",
    "PurgeAdmin",
    "ServiceCheckAdmin",
    "SessionAdmin",
    "WorkerHeartbeatAdmin",
]
