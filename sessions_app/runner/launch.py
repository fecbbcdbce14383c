"""Launch a claimed session: decay sweep, injection and receipt, prompt, files, command line, process.

Everything about the process is stored before it starts, so that the reaper can find it after a crash.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import uuid
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from claudeops.lib.claude_cli import environment
from claudeops.lib.secrets import mask
from memories.capture.fields import agent_id
from memories.files.sync import sync_file
from memories.lifecycle.sweep import sweep
from memories.models import AgentFile
from sessions_app import receipts
from sessions_app.errors import InvalidSession
from sessions_app.models import Agent, FollowsAs, Runner, Session
from sessions_app.prompts.render import append_text
from sessions_app.queue.dispatch import budget_of
from sessions_app.replay.pick import PLAYER, name_of, next_stream
from sessions_app.runner import agent_hooks, agent_mcp, process
from sessions_app.runner.command import RESPONSE_SCHEMA_JSON, Launch, claude_argv, needs_file, replay_argv
from sessions_app.runner.prompt import Selected, selected_for
from sessions_app.runner.raw_log import sessions_folder

logger = logging.getLogger(__name__)

SECRET_FILES = (
    *("secret_key", "first-sign-in.txt", "*.sqlite3*", "sessions/**/mcp.json", "sessions/**/hooks.json"),
    *("backups/**", "before-restore-*/**"),
)
"""Files in the data folder that the agent's user could read; a tool rule forbids it."""

MCP_CONFIG, HOOK_SETTINGS = "mcp.json", "hooks.json"
WRITE_TOOLS = ("Edit", "Write", "NotebookEdit")


def folder_of(session: Session) -> Path:
    """Return the session's folder in the data folder, for raw log, stderr, prompt and handoff file."""
    return sessions_folder() / f"{session.queued_at:%Y-%m}" / str(session.uuid)


def handoff_file(session: Session) -> Path:
    return folder_of(session) / "handoff.json"


def stderr_file(session: Session) -> Path:
    return folder_of(session) / "stderr.log"


def launch(session: Session, *, at: datetime | None = None) -> process.Process:
    """Start the process of a claimed session.

    Raises CannotStart, SessionsError, MemoriesError or OSError; the row then has no pid.
    """
    at = at or timezone.now()
    agent = session.agent
    sweep(at=at, source="session")
    sync_agent_file(session, at=at)
    selection = inject(session, at=at)
    folder = folder_of(session)
    sessions_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "tmp").mkdir(exist_ok=True)
    # The CLI gets what is stored: a prompt goes to a model, and into the transcript and the raw log.
    composed = selection.composed(session, handoff_file=str(handoff_file(session)), at=at)
    session.prompt, session.prompt_sha256 = composed.text, composed.sha256
    session.injected_text = mask(append_text(session, selection.ops.text))
    session.cli_session_id = str(uuid.uuid4())
    log = folder / f"stdout-{session.attempts}.jsonl"
    session.log_file = str(log.relative_to(settings.CLAUDEOPS_DATA_DIR))
    before = session.exposed_before
    session.ingest_offset = 0
    session.ingest_state = {"before": before, "spending": {"carried_usd": carried_usd(session)}}
    (folder / "prompt.md").write_text(session.prompt, encoding="utf-8")
    argv = command_of(session, agent, folder)
    cwd = working_directory(agent)
    prompt = ("prompt", "prompt_sha256", "injected_text", "cli_session_id", "log_file")
    session.save(update_fields=[*prompt, "ingest_offset", "ingest_state", "replay_stream", "model"])
    started = process.start(
        argv,
        stdin=folder / "prompt.md",
        stdout=log,
        stderr=stderr_file(session),
        cwd=cwd,
        env=environment(
            os.environ,
            home=settings.CLAUDEOPS_CLAUDE_HOME,
            tmp_dir=folder / "tmp",
            passed=settings.CLAUDEOPS_PASS_ENV,
            extra={
                "CLAUDEOPS_SESSION": str(session.uuid),
                "CLAUDEOPS_HANDOFF_FILE": str(handoff_file(session)),
                # The server has few tools: loading them all saves a search turn.
                **({"ENABLE_TOOL_SEARCH": "false"} if settings.CLAUDEOPS_AGENT_MCP else {}),
            },
        ),
    )
    session.pid, session.pid_started_at = started.pid, started.started_at
    session.save(update_fields=["pid", "pid_started_at"])
    return started


def sync_agent_file(session: Session, *, at: datetime) -> None:
    """Sync the memory file of the session's agent, and make it when it is missing.

    Whatever happens in there, the session goes on with what was told last; the file's page says what happened.
    """
    if session.agent is None or session.project is None or not session.project.path:
        return
    agent = agent_id(session.agent.slug)
    try:
        sync_file(session.project, agent, create=True, at=at)
    except Exception as error:
        logger.exception("session %s: the file of agent %s could not be synced", session.pk, agent)
        problem = f"The sync before session {session.pk} failed: {error}"
        AgentFile.objects.filter(project=session.project, agent=agent).update(problem=problem)


def inject(session: Session, *, at: datetime) -> Selected:
    selection = selected_for(session, at=at)
    receipts.keep(
        session, selection.ops, selection.project, selection.agent, selection.knowledge, selection.curated, at=at
    )
    return selection


def command_of(session: Session, agent: Agent | None, folder: Path) -> list[str]:
    """Build the session's command line. Sets its model or stream, and writes the files that the command line names."""
    if session.runner == Runner.REPLAY:
        return replay_argv(PLAYER, stream_of(session, agent), session.cli_session_id, settings.CLAUDEOPS_REPLAY_SPEED)
    session.model = session.model or model_of(session.tier)
    allowed, disallowed = tools_of(session, agent)
    chosen = Launch(
        cli_session_id=session.cli_session_id,
        model=session.model,
        allowed_tools=allowed,
        disallowed_tools=disallowed,
        max_turns=(agent and agent.max_turns) or settings.CLAUDEOPS_MAX_TURNS,
        max_budget_usd=float(session.reserved_usd or budget_of(agent)),
        append_text=session.injected_text,
        append_file=folder / "system-prompt.md",
        schema=RESPONSE_SCHEMA_JSON if agent is None or agent.structured_response else "",
        resume=resumed(session),
        mcp_config=write_mcp_config(session, folder) if settings.CLAUDEOPS_AGENT_MCP else None,
        settings=write_hook_settings(session, folder),
    )
    if needs_file(chosen.append_text):
        chosen.append_file.write_text(chosen.append_text, encoding="utf-8")
    return claude_argv(settings.CLAUDEOPS_CLAUDE_BIN, chosen)


def write_mcp_config(session: Session, folder: Path) -> Path:
    """Write the CLI's MCP configuration for this session."""
    content = agent_mcp.config(
        os.environ,
        python=sys.executable,
        manage=str(settings.BASE_DIR / "manage.py"),
        session=str(session.uuid),
        data_dir=str(Path(settings.CLAUDEOPS_DATA_DIR).resolve()),
        settings_module="claudeops.settings",
        read_only=session.dry_run,
    )
    return write_private(folder / MCP_CONFIG, content)


def write_hook_settings(session: Session, folder: Path) -> Path | None:
    """Write the CLI's settings with the hooks of this session; None when it has none."""
    url, sets = settings.CLAUDEOPS_HOOK_URL, settings.CLAUDEOPS_SESSION_HOOKS
    if not url or not sets:
        return None
    return write_private(folder / HOOK_SETTINGS, agent_hooks.settings_of(session, url=url, sets=sets))


def write_private(path: Path, content: dict[str, Any]) -> Path:
    """Write JSON that holds a secret, readable by its user only."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(content, file)
    return path


def model_of(tier: int) -> str:
    return str(getattr(settings, f"CLAUDEOPS_TIER{tier}_MODEL"))


def tools_of(session: Session, agent: Agent | None) -> tuple[Sequence[str], Sequence[str]]:
    """Return (allowed, denied) tool rules. A dry run gets read-only tools, whatever its agent has."""
    allowed = list((agent and agent.allowed_tools) or settings.CLAUDEOPS_ALLOWED_TOOLS)
    # Two slashes begin an absolute path in a rule; a denied Read applies to Grep and Glob too.
    secrets = [f"Read(/{Path(settings.CLAUDEOPS_DATA_DIR).resolve() / name})" for name in SECRET_FILES]
    if settings.CLAUDEOPS_BACKUP_DIR:
        secrets.append(f"Read(/{Path(settings.CLAUDEOPS_BACKUP_DIR).resolve()}/**)")
    disallowed = [*settings.CLAUDEOPS_DISALLOWED_TOOLS, *((agent and agent.disallowed_tools) or []), *secrets]
    mcp_tools = agent_mcp.tool_rules(read_only=session.dry_run) if settings.CLAUDEOPS_AGENT_MCP else []
    if session.dry_run:
        return [*settings.CLAUDEOPS_OBSERVE_TOOLS, *mcp_tools], [*disallowed, *WRITE_TOOLS]
    allowed += mcp_tools
    if agent is not None and not agent.structured_response:
        allowed.append(f"Edit(/{handoff_file(session)})")
    return allowed, disallowed


def stream_of(session: Session, agent: Agent | None) -> Path:
    source = session.replay_stream or (agent.replay_stream if agent else "")
    if not source:
        raise InvalidSession(
            "A replay needs a recorded stream.", "Give --stream FILE, or choose an agent that has one."
        )
    earlier = Session.objects.filter(agent=agent, runner=Runner.REPLAY, started_at__isnull=False)
    path = next_stream(source, earlier.exclude(pk=session.pk).count())
    session.replay_stream = name_of(path)
    return path


def working_directory(agent: Agent | None) -> Path:
    """Return where the process starts. The default folder is created; an agent's folder must exist."""
    if agent and agent.working_directory:
        path = Path(agent.working_directory).expanduser()
        if not path.is_dir():
            raise InvalidSession(
                f"The working directory of agent {agent.slug} does not exist: {agent.working_directory}.",
                "Create it, or change the agent.",
            )
        return path
    path = Path(settings.CLAUDEOPS_WORK_DIR)
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def carried_usd(session: Session) -> float:
    """Return the dollars of the conversation that a session continues: its parent's, and of those that it continued."""
    total, one = 0.0, session
    while one.follows_as == FollowsAs.CONTINUE and one.parent is not None:
        one = one.parent
        total += float(one.cost_usd)
    return total


def resumed(session: Session) -> str:
    """Return the CLI's session that this one continues; empty when it continues none. Raises InvalidSession.

    The CLI keeps a conversation on the host where it ran, in its home.
    """
    parent = session.parent
    if session.follows_as != FollowsAs.CONTINUE:
        return ""
    if parent is None or not parent.cli_session_id:
        raise InvalidSession("The session to continue is gone, or never started.", "Run the task anew.")
    if parent.host and parent.host != session.host:
        raise InvalidSession(
            f"The conversation of session {parent.pk} is on the host {parent.host}; this is {session.host}.",
            f"Retry it: manage.py session retry {parent.pk}",
        )
    return parent.cli_session_id
