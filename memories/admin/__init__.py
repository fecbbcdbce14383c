"""The Django admin of memories. Imports no other surface; links to the sessions' pages by name."""

from memories.admin.agent_file import AgentCaptureAdmin, AgentFileAdmin, AgentFileConflictAdmin
from memories.admin.change import MemoryChangeAdmin
from memories.admin.curating import (
    MaintenanceRunAdmin,
    MemoryFileAdmin,
    MemoryFileCommitAdmin,
    ProposalAdmin,
    ProposalDecisionAdmin,
    ReflectionAdmin,
    TelemetryRecordAdmin,
)
from memories.admin.memory import MemoryAdmin
from memories.admin.model_call import ModelCallAdmin
from memories.admin.observing import (
    FactAdmin,
    GateDecisionAdmin,
    GateThresholdAdmin,
    TranscriptAdmin,
    TranscriptPartAdmin,
)
from memories.admin.project import ProjectAdmin
from memories.admin.token import ApiTokenAdmin

__all__ = [
    "AgentCaptureAdmin",
    "AgentFileAdmin",
    "AgentFileConflictAdmin",
    "ApiTokenAdmin",
    "FactAdmin",
    "GateDecisionAdmin",
    "GateThresholdAdmin",
    "MaintenanceRunAdmin",
    "MemoryAdmin",
    "MemoryChangeAdmin",
    "MemoryFileAdmin",
    "MemoryFileCommitAdmin",
    "ModelCallAdmin",
    "ProjectAdmin",
    "ProposalAdmin",
    "ProposalDecisionAdmin",
    "ReflectionAdmin",
    "TelemetryRecordAdmin",
    "TranscriptAdmin",
    "TranscriptPartAdmin",
]
