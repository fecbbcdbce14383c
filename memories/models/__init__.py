"""The models of memories. QuerySets read; `store.py` and `lifecycle/` write."""

from memories.models.agent_file import (
    AgentCapture,
    AgentFile,
    AgentFileConflict,
    AgentFileEntry,
    CaptureOutcome,
    ConflictAnswer,
    ConflictKind,
    FileState,
)
from memories.models.change import By, Change, Listed, MemoryChange, drop_lost_links, states_before, to_utc
from memories.models.counts import MemoryChangeCount
from memories.models.disagreement import ANSWERS, LABELS, Answer, Disagreement, DisagreementKind, DisagreementState
from memories.models.embedding import Embedding, EmbeddingModel, ModelState, PendingEmbedding
from memories.models.highest import highest, moment_of
from memories.models.memory import Exposure, Inactive, Memory, Source, Trust, Verdict
from memories.models.model_call import CallOutcome, ModelCall
from memories.models.observing import (
    ArrivedBy,
    ClassifiedBy,
    Fact,
    FactKind,
    FactOutcome,
    GateDecision,
    GateThreshold,
    Label,
    PartState,
    Priority,
    Segment,
    Stage,
    StageName,
    StageState,
    Transcript,
    TranscriptKind,
    TranscriptPart,
)
from memories.models.project import Project, UsedMeans
from memories.models.project_tag import ProjectTag
from memories.models.recalled import Recalled, RecallMark, RecallVote
from memories.models.terms import MemoryTerms, MemoryTermsDue
from memories.models.token import ApiToken, Scope

__all__ = [
    "ANSWERS",
    "LABELS",
    "AgentCapture",
    "AgentFile",
    "AgentFileConflict",
    "AgentFileEntry",
    "Answer",
    "ApiToken",
    "ArrivedBy",
    "By",
    "CallOutcome",
    "CaptureOutcome",
    "Change",
    "ClassifiedBy",
    "ConflictAnswer",
    "ConflictKind",
    "Disagreement",
    "DisagreementKind",
    "DisagreementState",
    "Embedding",
    "EmbeddingModel",
    "Exposure",
    "Fact",
    "FactKind",
    "FactOutcome",
    "FileState",
    "GateDecision",
    "GateThreshold",
    "Inactive",
    "Label",
    "Listed",
    "Memory",
    "MemoryChange",
    "MemoryChangeCount",
    "MemoryTerms",
    "MemoryTermsDue",
    "ModelCall",
    "ModelState",
    "PartState",
    "PendingEmbedding",
    "Priority",
    "Project",
    "ProjectTag",
    "RecallMark",
    "RecallVote",
    "Recalled",
    "Scope",
    "Segment",
    "Source",
    "Stage",
    "StageName",
    "StageState",
    "Transcript",
    "TranscriptKind",
    "TranscriptPart",
    "Trust",
    "UsedMeans",
    "Verdict",
    "drop_lost_links",
    "highest",
    "moment_of",
    "states_before",
    "to_utc",
]
