"""Name the decisions that govern a file when a session first edits one of theirs."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath

from memories.injection.tags import Subject
from memories.library.decisions import index
from memories.models import Decision
from sessions_app.hooks import receipts
from sessions_app.hooks.events import HANDLERS, HookAnswer, HookCall
from sessions_app.models import HookReceipt

EVENT = "PreToolUse"
EDITS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
PART = "decision "


def name(call: HookCall) -> HookAnswer | None:
    """Tell a session in a line each which decisions govern the file that it is about to change, each once."""
    path = _below(call)
    if call.project is None or not path:
        return None
    governing = index.governing(call.project, Subject(paths=(path,)))
    if not governing:
        return None
    own = HookReceipt.objects.filter(cli_session_id=call.payload.cli_session_id, event=EVENT)
    told = set(own.filter(part__startswith=PART).values_list("part", flat=True))
    new = {index.line_of(row): row for row in governing if _part(row) not in told}
    if not new:
        return None
    text = "\n".join(["Decided here; read it before you change this file:", *(f"- {line}" for line in new)])
    return HookAnswer(context=text, keep=partial(_keep, call, new))


def _keep(call: HookCall, lines: dict[str, Decision]) -> None:
    for line, row in lines.items():
        receipts.keep(call, part=_part(row), text=line, included=())


def _part(row: Decision) -> str:
    return f"{PART}{row.project_id} {row.key}"[:100]


def _below(call: HookCall) -> str:
    """Return the file below the project's repository; "" for a call that edits none there."""
    given = call.payload.tool_input
    path = given.get("file_path") or given.get("notebook_path")
    root = call.project.path if call.project else ""
    if call.payload.tool_name not in EDITS or not isinstance(path, str) or not root:
        return ""
    whole = PurePosixPath(path) if path.startswith("/") else PurePosixPath(call.payload.cwd or root, path)
    return str(whole.relative_to(root)) if whole.is_relative_to(root) and ".." not in whole.parts else ""


HANDLERS[EVENT].append(name)
