"""Models of agents and their sessions. Querysets here only read; the runner, the queue and domain modules write."""

from sessions_app.models.agent import Agent, Runner, ScheduleKind
from sessions_app.models.cooldown import CooldownAction, CooldownClearance, Outcome, Remediation, ServiceCheck
from sessions_app.models.counts import AgentCount, EventCount, SessionCount
from sessions_app.models.event import Event, Level
from sessions_app.models.heartbeat import Ending, WorkerHeartbeat, WorkerRun
from sessions_app.models.hook import (
    HookHeard,
    HookReceipt,
    KnownRecord,
    PromptReceipt,
    SourceRule,
    TranscriptFolder,
)
from sessions_app.models.purge import Purge, PurgeState
from sessions_app.models.receipt import How, Injected, InjectionReceipt, UsedMemory
from sessions_app.models.session import OPEN_STATUSES, TASK_TEXT, FollowsAs, LogEntry, LogKind, Session, Status, Trigger

__all__ = [
    "OPEN_STATUSES",
    "TASK_TEXT",
    "Agent",
    "AgentCount",
    "CooldownAction",
    "CooldownClearance",
    "Ending",
    "Event",
    "EventCount",
    "FollowsAs",
    "HookHeard",
    "HookReceipt",
    "How",
    "Injected",
    "InjectionReceipt",
    "KnownRecord",
    "Level",
    "LogEntry",
    "LogKind",
    "Outcome",
    "PromptReceipt",
    "Purge",
    "PurgeState",
    "Remediation",
    "Runner",
    "ScheduleKind",
    "ServiceCheck",
    "Session",
    "SessionCount",
    "SourceRule",
    "Status",
    "TranscriptFolder",
    "Trigger",
    "UsedMemory",
    "WorkerHeartbeat",
    "WorkerRun",
]
