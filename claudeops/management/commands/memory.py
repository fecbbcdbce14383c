"""The command `memory` with the verbs that need to know sessions."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.utils import timezone

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, current_user, table
from claudeops.lib.secrets import mask
from claudeops.purge import describe, run
from claudeops.purge.choice import Choice, PurgeError, choose
from memories.injection import ops
from memories.injection.relevant import Task
from memories.lifecycle import forgotten
from memories.lifecycle.projects import find_project
from memories.management import arguments
from memories.management.commands.memory import Command as MemoryCommand
from memories.management.commands.memory import _memory as memory_of
from sessions_app.credit.relevance import adjust_relevance
from sessions_app.learning.lessons import learn
from sessions_app.models import Agent, Session
from sessions_app.runner.prompt import Selected, selected_for
from sessions_app.trace import trace
from sessions_app.trace.steps import End

TOLD = ("Curated Memory", "Memories", "Knowledge", "Agent Memory")
"""The sections of a prompt that tell what is known."""


class Command(MemoryCommand):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            **self.verbs,
            "adjust-relevance": Verb(
                "Learn the relevance of project memories from the sessions that used them.",
                self.adjust_relevance,
                _of_adjust,
            ),
            "learn": Verb(
                "Learn from the runs of a project: what failed runs had in common, what a retry did differently.",
                self.learn,
                _of_learn,
            ),
            "context": Verb("What the next session is told, exactly.", self.context, arguments.context),
            "trace": Verb(
                "Say why something was not remembered: where its way to a prompt ended, what would have changed that.",
                self.trace,
                _of_trace,
            ),
            "purge": Verb(
                "Forget on request: remove memories and their texts from everything that is stored.",
                self.forget,
                _of_purge,
            ),
        }

    def adjust_relevance(self, project: str | None, everything: bool, dry_run: bool) -> Result:
        one = find_project(project) if project else None
        found = adjust_relevance(one, also_set=everything, dry_run=dry_run)
        rows = [
            (
                of.project,
                made.memory_id,
                f"{made.outcomes.helped} of {made.outcomes.decided}",
                "-" if made.before is None else f"{made.before:.2f}",
                "stays, set by a person" if made.kept else f"{made.after:.2f}",
            )
            for of in found
            for made in of.adjustments
        ]
        lines = [
            f"{of.project}: nothing to learn, no use of its memories has helped yet." for of in found if not of.base
        ]
        if rows:
            lines.append(table(["project", "memory", "helped", "before", "after"], rows))
        if dry_run and rows:
            lines.append("Nothing was written (--dry-run).")
        return Result([asdict(of) for of in found], "\n".join(lines) or "There is no project.")

    def learn(self, project: str, dry_run: bool) -> Result:
        found = learn(find_project(project), dry_run=dry_run)
        lines = [f"{one.outcome}: {one.lesson.text} (sessions {', '.join(map(str, one.lesson.runs))})" for one in found]
        return Result([asdict(one) for one in found], "\n".join(lines) or "Its runs teach nothing yet.")

    def context(self, tier: int | None, project: str | None, task: str, agent: str | None, explain: bool) -> Result:
        """Show what `session compose` puts into the prompt of such a session, and its system prompt's memories."""
        by, at = Agent.objects.named(agent) if agent else None, timezone.now()
        session = Session(
            agent=by,
            project=find_project(project) if project else (by.project if by else None),
            tier=tier or (by.tier if by else 1),
            task=mask(sys.stdin.read() if task == "-" else task),
        )
        selected = selected_for(session, at=at)
        if explain:
            return self._explained(session, selected, at)
        composed = selected.composed(session, handoff_file="handoff.json", at=at)
        sections = [(title, text) for title, text in composed.sections if title.partition(" (")[0] in TOLD]
        text = "\n\n".join(filter(None, [selected.ops.text, *(f"## {title}\n\n{text}" for title, text in sections)]))
        if not text:
            self.stderr.write("No memory would go into the prompt; --explain says why.")
        told = [{"title": title, "text": text} for title, text in sections]
        data = {"tier": session.tier, **asdict(selected.ops), "sections": told, "receipt": selected.record}
        actions = [NextAction(f"manage.py memory context --tier {session.tier} --explain", "see why each is in or out")]
        return Result(data, text, actions)

    def _explained(self, session: Session, selected: Selected, at: datetime) -> Result:
        budget = ops.budget_for(session.tier)
        about = Task(session.task, session.agent.slug if session.agent else None, is_preview=True)
        explained = list(ops.explain(budget=budget, project_id=session.project_id, at=at, task=about))
        for name in ("included", "left_out"):
            explained += [ops.explained(entry, is_in=name == "included") for entry in selected.record[name]]
        if self.as_json:
            return Result([{**asdict(entry), "in": entry.in_} for entry in explained])
        for entry in explained:
            self.stdout.write(f"{'in ' if entry.in_ else 'out'}  {entry.memory_id}  {entry.label}: {entry.reason}")
        return Result(None)

    def trace(self, text: list[str], session: int | None) -> Result:
        asked = " ".join(text).strip()
        if not asked:
            raise Refusal("empty", "The text is empty.", 'Say what it should have known: manage.py memory trace "TEXT"')
        found = trace(asked, session_id=session)
        actions = [NextAction("manage.py memory add …", "Add it as a memory")] if found.end is not End.DISCARDED else []
        if found.memory:
            pk = found.memory.pk
            actions = [NextAction(f"manage.py memory show {pk}", f"Show memory {pk} with its history")]
        return Result(found.as_dict(), found.as_text(), actions)

    def forget(
        self,
        ids: Any,
        inactive_days: int | None,
        erase: bool,
        yes: bool,
        by: str,
        reason: str,
        resume: bool,
        backups: bool,
        force: bool,
        allow: str,
        **given: Any,
    ) -> Result:
        """Purge texts; with --inactive-days delete old memories, whose history stays."""
        chosen = bool(ids) or any(value not in ("", None, False) for value in given.values())
        if allow:
            if chosen or resume or inactive_days is not None:
                raise Refusal("usage", "--allow stands alone: it names a text that may be stored again.")
            if not forgotten.allow(by=by or current_user(), text=allow):
                raise Refusal("not_purged", "This text is not refused: no purge removed it, or it was allowed again.")
            return Result({"allowed": 1}, "The text may be stored again.")
        if inactive_days is not None and not (chosen or resume):
            return self.purge(ids, inactive_days, erase, yes, by, reason)
        if inactive_days is not None or erase:
            raise Refusal("usage", "--inactive-days and --erase stand alone.", "memory purge --inactive-days 365 --yes")
        if resume and chosen:
            raise Refusal("usage", "--resume stands alone: it goes on with what was begun.")
        if resume and (pks := run.unfinished()):
            return self._carried_out(pks)
        if resume:
            return Result({"purged": False, "purges": []}, "No purge is unfinished.")
        choice = Choice(tuple(dict.fromkeys(memory_of(one).pk for one in ids)), **given)
        if not yes:
            planned = run.plan(choice)
            about = choose(choice)
            data = {"purged": False, "plan": planned, "texts": about.texts}
            return Result(data, describe.plan_text(planned, about))
        purge = run.begin(choice, by=by or current_user(), backups=backups, force=force)
        return self._carried_out([purge.pk])

    def _carried_out(self, pks: list[int]) -> Result:
        done, texts = [], []
        for pk in pks:
            try:
                purge = run.carry_out(pk)
            except PurgeError as error:
                raise Refusal(error.code, f"Purge {pk} is not done. {error}", error.fix) from None
            done.append({"id": pk, "chosen": purge.chosen, "receipt": purge.receipt})
            texts.append(describe.receipt_text(purge))
        kept = any(one["receipt"].get("kept") for one in done)
        see = [NextAction("manage.py backup", "make a backup without the texts")]
        return Result({"purged": True, "purges": done}, "\n\n".join(texts), see, exit_code=1 if kept else 0)


def _of_purge(parser: ArgumentParser) -> None:
    arguments.purge(parser)
    parser.add_argument("--query", default="", metavar="TEXT", help="memories that contain it, and TEXT everywhere")
    parser.add_argument("--service", default="", help="memories of a service; general for those without one")
    parser.add_argument("--project", default="", metavar="SLUG", help="memories of a project")
    parser.add_argument("--agent", default="", metavar="SLUG", help="memories of an agent, and that its sessions said")
    parser.add_argument("--session", type=int, metavar="ID", help="all that a session wrote")
    parser.add_argument("--person", default="", metavar="NAME", help="what a person wrote; the account stays")
    parser.add_argument("--backups", action="store_true", help="also remove the backups that may hold the texts")
    parser.add_argument("--short", action="store_true", help="also look for memories' texts of less than 8 characters")
    parser.add_argument("--force", action="store_true", help="although a session runs that knows it")
    parser.add_argument("--allow", default="", metavar="TEXT", help="let a purged text be stored again")
    parser.add_argument("--resume", action="store_true", help="go on with what was interrupted")


def _of_learn(parser: ArgumentParser) -> None:
    parser.add_argument("--project", metavar="SLUG", required=True)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be stored")


def _of_trace(parser: ArgumentParser) -> None:
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what should be known, or the number of a memory")
    into = "the session that should have been told it (default: the latest that might have been)"
    parser.add_argument("--session", type=int, metavar="ID", help=into)


def _of_adjust(parser: ArgumentParser) -> None:
    parser.add_argument("--project", metavar="SLUG", help="one project (default: all)")
    parser.add_argument("--all", dest="everything", action="store_true", help="also scores that a person set")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be changed")
