"""The command `memory` with the verbs that need to know sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from django.utils import timezone

from claudeops.features.purge import describe, run
from claudeops.features.purge.choice import Choice, PurgeError, choose
from claudeops.features.trace import trace
from claudeops.features.trace.steps import End
from claudeops.lib.cli import Refusal, Result, arg, by, table, text_or_stdin, verb
from memories.injection import ops
from memories.injection.relevant import Task
from memories.lifecycle import forgotten
from memories.lifecycle.projects import find_project
from memories.management.commands.memory import Command as MemoryCommand
from memories.management.commands.memory import delete_inactive
from memories.management.parameters import REASON, find_memory, project
from memories.models import Project
from sessions_app.credit.outcome import adjust_relevance
from sessions_app.learning import learn
from sessions_app.models import Session
from sessions_app.runner.prompt import Selected, draft, selected_for

TOLD = ("Curated Memory", "Memories", "Knowledge", "Agent Memory")
"""The sections of a prompt that tell what is known."""


@dataclass(frozen=True)
class PurgeFilters:
    query: str = arg("memories that contain it, and TEXT everywhere", metavar="TEXT", default="")
    service: str = arg("memories of a service; general for those without one", default="")
    project: str = arg("memories of a project", metavar="SLUG", default="")
    agent: str = arg("memories of an agent, and that its sessions said", metavar="SLUG", default="")
    session: int | None = arg("all that a session wrote", metavar="ID")
    person: str = arg("what a person wrote; the account stays", metavar="NAME", default="")
    short: bool = arg("also look for memories' texts of less than 8 characters")


class Command(MemoryCommand):
    @verb
    def adjust_relevance(
        self,
        *,
        project: Project | None = project("one project (default: all)"),
        all_: bool = arg("also scores that a person set"),
        dry_run: bool = arg("only say what would be changed"),
    ) -> Result:
        """Learn the relevance of project memories from the sessions that used them."""
        reports = adjust_relevance(project, also_set=all_, dry_run=dry_run)
        rows = [
            (
                of.project,
                adjustment.memory_id,
                f"{adjustment.outcomes.helped} of {adjustment.outcomes.decided}",
                "-" if adjustment.before is None else f"{adjustment.before:.2f}",
                "stays, set by a person" if adjustment.kept else f"{adjustment.after:.2f}",
            )
            for of in reports
            for adjustment in of.adjustments
        ]
        lines = [
            f"{of.project}: nothing to learn, no use of its memories has helped yet." for of in reports if not of.base
        ]
        if rows:
            lines.append(table(["project", "memory", "helped", "before", "after"], rows))
        if dry_run and rows:
            lines.append("Nothing was written (--dry-run).")
        return Result(reports, "\n".join(lines) or "There is no project.")

    @verb
    def learn(
        self, *, project: str = arg(metavar="SLUG"), dry_run: bool = arg("only say what would be stored")
    ) -> Result:
        """Learn from the runs of a project: what failed runs had in common, what a retry did differently."""
        lessons = learn(find_project(project), dry_run=dry_run)
        lines = [
            f"{one.outcome}: {one.lesson.text} (sessions {', '.join(map(str, one.lesson.runs))})" for one in lessons
        ]
        return Result(lessons, "\n".join(lines) or "Its runs teach nothing yet.")

    @verb
    def context(
        self,
        *,
        tier: int | None = arg("default: the agent's, or 1", choices=(1, 2, 3)),
        project: Project | None = project("a project's slug (default: the agent's)"),
        task: str = arg(
            "the task or alert of the session (- reads stdin)", metavar="TEXT", default="", read=text_or_stdin
        ),
        agent: str | None = arg("the agent of the session, whose own memories a task may find", metavar="SLUG"),
        explain: bool = arg("say for each memory why it is in or out"),
    ) -> Result:
        """What the next session is told, exactly.

        `session compose` puts the same into the prompt of such a session, and these memories into its system prompt.
        """
        session, at = draft(agent or None, project, tier, task), timezone.now()
        selected = selected_for(session, at=at)
        if explain:
            return self._explained(session, selected, at)
        composed = selected.composed(session, handoff_file="handoff.json", at=at)
        sections = [(title, text) for title, text in composed.sections if title.partition(" (")[0] in TOLD]
        text = "\n\n".join(filter(None, [selected.ops.text, *(f"## {title}\n\n{text}" for title, text in sections)]))
        if not text:
            self.stderr.write("No memory would go into the prompt; --explain says why.")
        passages = [{"title": title, "text": text} for title, text in sections]
        data = {"tier": session.tier, **asdict(selected.ops), "sections": passages, "receipt": selected.record}
        actions = {f"manage.py memory context --tier {session.tier} --explain": "see why each is in or out"}
        return Result(data, text, actions)

    def _explained(self, session: Session, selected: Selected, at: datetime) -> Result:
        budget = selected.ops.budget
        about = Task(session.task, session.agent.slug if session.agent else None, is_preview=True)
        explained = list(
            ops.explain(budget=budget, project_id=session.project_id, at=at, task=about, told=selected.told)
        )
        for name in ("included", "left_out"):
            explained += [ops.explained(entry, is_in=name == "included") for entry in selected.record[name]]
        lines = [
            f"{'in ' if entry.in_ else 'out'}  {entry.memory_id}  {entry.label}: {entry.reason}" for entry in explained
        ]
        return Result([{**asdict(entry), "in": entry.in_} for entry in explained], "\n".join(lines))

    @verb
    def trace(
        self,
        text: Sequence[str] = arg("what should be known, or the number of a memory"),
        *,
        session: int | None = arg(
            "the session that should have been told it (default: the latest that might have been)", metavar="ID"
        ),
    ) -> Result:
        """Say why something was not remembered: where its way to a prompt ended, what would have changed that."""
        question = " ".join(text).strip()
        if not question:
            raise Refusal("empty", "The text is empty.", 'Say what it should have known: manage.py memory trace "TEXT"')
        diagnosis = trace(question, session_id=session)
        actions = {"manage.py memory add …": "Add it as a memory"} if diagnosis.end is not End.DISCARDED else {}
        if diagnosis.memory:
            pk = diagnosis.memory.pk
            actions = {f"manage.py memory show {pk}": f"Show memory {pk} with its history"}
        return Result(diagnosis.as_dict(), diagnosis.as_text(), actions)

    @verb
    def purge(
        self,
        ids: Sequence[str] = arg("numbers or UUIDs", metavar="ID", default=()),
        *,
        inactive_days: int | None = arg("inactive ones not confirmed for so many days", metavar="DAYS"),
        erase: bool = arg("delete the history too, so that no record of these memories is left"),
        yes: bool = arg("delete; without it the command only says what would be deleted"),
        backups: bool = arg("also remove the backups that may hold the texts"),
        force: bool = arg("although a session runs that knows it"),
        allow: str = arg("let a purged text be stored again", metavar="TEXT", default=""),
        resume: bool = arg("go on with what was interrupted"),
        by: str = by(),
        reason: str = REASON,
        filters: PurgeFilters,
    ) -> Result:
        """Forget on request: remove memories and their texts from everything that is stored.

        With --inactive-days delete old memories, whose history stays.
        """
        chosen = bool(ids) or any(value not in ("", None, False) for value in vars(filters).values())
        if allow:
            if chosen or resume or inactive_days is not None:
                raise Refusal("usage", "--allow stands alone: it names a text that may be stored again.")
            if not forgotten.allow(by=by, text=allow):
                raise Refusal("not_purged", "This text is not refused: no purge removed it, or it was allowed again.")
            return Result({"allowed": 1}, "The text may be stored again.")
        if inactive_days is not None and not (chosen or resume):
            return delete_inactive(inactive_days, erase=erase, yes=yes, by=by, reason=reason)
        if inactive_days is not None or erase:
            raise Refusal("usage", "--inactive-days and --erase stand alone.", "memory purge --inactive-days 365 --yes")
        if resume and chosen:
            raise Refusal("usage", "--resume stands alone: it goes on with what was begun.")
        if resume and not (pks := run.unfinished()):
            return Result({"purged": False, "purges": []}, "No purge is unfinished.")
        if resume:
            return _carried_out(pks)
        choice = Choice(tuple(dict.fromkeys(find_memory(one).pk for one in ids)), **vars(filters))
        if not yes:
            planned = run.plan(choice)
            about = choose(choice)
            data = {"purged": False, "plan": planned, "texts": about.texts}
            return Result(data, describe.plan_text(planned, about))
        purge = run.begin(choice, by=by, backups=backups, force=force)
        return _carried_out([purge.pk])


def _carried_out(pks: list[int]) -> Result:
    purges, texts = [], []
    for pk in pks:
        try:
            purge = run.carry_out(pk)
        except PurgeError as error:
            raise Refusal(error.code, f"Purge {pk} is not done. {error}", error.fix) from None
        purges.append({"id": pk, "chosen": purge.chosen, "receipt": purge.receipt})
        texts.append(describe.receipt_text(purge))
    has_remainder = any(one["receipt"].get("kept") for one in purges)
    see = {"manage.py backup": "make a backup without the texts"}
    return Result({"purged": True, "purges": purges}, "\n\n".join(texts), see, exit_code=1 if has_remainder else 0)
