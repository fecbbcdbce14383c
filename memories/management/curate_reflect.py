"""The verb `curate reflect`."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict

from claudeops.lib.cli import NextAction, Refusal, Result, Verb
from claudeops.lib.humanize import exact
from memories.curate.reflection import Done, reflect, runs
from memories.models import Project


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--project", metavar="SLUG", help="the file of this project (default: the global one)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be asked; ask nothing")


def run(project: str | None, dry_run: bool) -> Result:
    scope = _project(project)
    if dry_run:
        return _preview(scope)
    done = reflect(scope)
    if done.outcome in (runs.WAITING, runs.FAILED):
        hint = "Run: manage.py model status"
        raise Refusal("model_unavailable", f"The reflector gave no answer: {done.why}.", hint)
    waits = bool(done.counts.get("made"))
    actions = [NextAction("manage.py proposal list", "see the proposals")] if waits else []
    return Result(asdict(done), "\n".join(_said(done)), actions)


def _said(done: Done) -> list[str]:
    if done.outcome != runs.DONE:
        return [f"Nothing was asked: {done.why}."]
    counts = done.counts
    return [
        f"Reflection {done.number}: {counts['observations']:,} observations became {counts['made']:,} proposals; "
        f"{counts['repeated']:,} repeated earlier ones, {counts['gone']:,} had lost their evidence, "
        f"{counts.get('rejected', 0):,} were rejected because their evidence does not carry them.",
        *(f"Not read: {what}." for what in done.unread),
    ]


def _preview(scope: Project | None) -> Result:
    choice, row = runs.preview(scope)
    count = len(choice.memories)
    tokens = len(row["text"]) // 4
    text = f"{count:,} observations that no reflection has shown, up to {exact(choice.until)}, about {tokens:,} tokens."
    text += " More wait for the next one." if choice.more else ""
    data = {
        "observations": row["observations"],
        "until": choice.until,
        "more": choice.more,
        "tokens": tokens,
        "target_tokens": row["target_tokens"],
    }
    return Result(data, text if count else "Nothing is new; nothing would be asked.")


def _project(slug: str | None) -> Project | None:
    if slug is None:
        return None
    found = Project.objects.filter(slug=slug).first()
    if found is None:
        raise Refusal("unknown_project", f"There is no project {slug!r}.", "Run: manage.py project list")
    return found


VERB = Verb("Ask the reflector about what is new since the last time, and store what it proposes.", run, _arguments)
