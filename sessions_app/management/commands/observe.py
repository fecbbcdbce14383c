"""`manage.py observe`: observe transcripts, logs and texts that no hook named; it says what that costs first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Count
from django.utils import timezone

from claudeops.lib.cli import Refusal, Result, SoleCommand, arg
from claudeops.lib.humanize import quantity
from memories.errors import Conflict
from memories.lifecycle.projects import find_project
from memories.llm.calls import spent
from memories.llm.roles import chosen
from memories.models import ArrivedBy, Fact, FactOutcome, PartState, Project, Stage, StageState, TranscriptPart
from memories.observe import pipeline
from memories.observe.pipeline import send_again
from sessions_app.transcripts import arrivals, cost, files
from sessions_app.transcripts.arrivals import Arrival, Named, Outcome
from sessions_app.transcripts.cost import Estimate
from sessions_app.transcripts.sweep import folders_here
from sessions_app.transcripts.turns import repeats, turns_of

OBSERVER = "observer"
TAKEN = (Outcome.NEW, Outcome.GROWN)
FOREVER = float("inf")
PROGRESS_EVERY = 100
"""Files between two lines of progress."""
WORDS = {StageState.WAITING.value: "waits", StageState.FAILED.value: "failed"}
STOPPED = (PartState.FAILED, PartState.UNREADABLE)
SHOWN = 10
"""Files that are named for each reason why they are left out."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A file, what is known of it, and what came of a look at it."""

    path: Path
    named: Named
    arrival: Arrival

    @property
    def is_wanted(self) -> bool:
        return self.arrival.outcome in TAKEN and self.arrival.planned > 0


class Command(SoleCommand):
    help = "Observe transcripts of Claude Code, stream-json logs and plain texts: distil each once into memories."

    def run(
        self,
        paths: Sequence[str] = arg(
            "files, or folders with transcripts in them and below", metavar="FILE|FOLDER", default=()
        ),
        *,
        backfill: bool = arg("all in the folders of transcripts that are swept, also what is older than their hooks"),
        dry_run: bool = arg("say what would be observed, and what it costs"),
        project: Project | None = arg(
            "the project (default: that of the session's folder)", metavar="SLUG", read=find_project
        ),
        agent: str = arg("the agent whose sessions they are", metavar="NAME", default=""),
        queue: bool = arg("leave the observation to the workers"),
        yes: bool = arg("do not ask"),
    ) -> Result:
        origin = Named(ArrivedBy.COMMAND, project=project, agent=agent)
        looked = self._look(list(_files(paths, backfill)), origin)
        wanted = [one for one in looked if one.is_wanted]
        transcript_ids = [one.arrival.transcript.pk for one in looked if one.arrival.transcript]
        again = list(TranscriptPart.objects.filter(transcript__in=transcript_ids, state__in=STOPPED))
        price = cost.estimate(
            [*(one.arrival.characters for one in wanted), *(len(part.prepared) for part in again)],
            sum(one.arrival.planned for one in wanted) + len(again),
            chosen(OBSERVER).model,
        )
        lines = [_counted(looked), *_left_out(looked)]
        if again:
            lines.append(f"Parts that failed, or whose answer could not be read, to be observed again: {len(again):,}.")
        summary = "\n".join([*lines, f"To observe: {price}.", *_of_the_budget(price)])
        data = {"files": [_data(one) for one in looked], "estimate": price.as_data(), "observed": None}
        # Parts wait where an earlier run was interrupted, or could not go on.
        waiting = TranscriptPart.objects.filter(transcript__in=transcript_ids, state=PartState.WAITING)
        begun = {*waiting.values_list("transcript", flat=True), *(part.transcript_id for part in again)}
        if dry_run or not (wanted or begun):
            return Result(data, f"{summary}\nNothing was changed (--dry-run)." if dry_run else summary)
        if (wanted or again) and not self.agreed(summary, yes=yes, question="Observe them?", what="cost"):
            return Result(data, "Nothing was changed.")
        with pipeline.draining(settings.CLAUDEOPS_HOST) as mine:
            for part in again:
                with suppress(Conflict):  # it is done, or is being observed, by now
                    send_again(part, by="the command")
            results = [arrivals.take_in(one.path, one.named) for one in wanted]
            ids = {*begun, *(one.transcript.pk for one in results if one.transcript)}
            if queue or not mine:
                why = "" if queue else " A worker of this host is at it already."
                return Result(data, f"The workers observe {quantity(len(ids), 'file')}.{why}", LOOK)
            return self._drained(data, sorted(ids))

    def _look(self, paths: Sequence[Path], given: Named) -> list[Looked]:
        looked = []
        for number, path in enumerate(paths, 1):
            session = arrivals.session_of_log(path)
            named = replace(given, session=session, ended=session is not None)
            looked.append(Looked(path, named, arrivals.take_in(path, named, dry_run=True)))
            if number % PROGRESS_EVERY == 0:
                self.stderr.write(f"looked at {number:,} of {len(paths):,} files")
        return looked

    def _drained(self, data: dict[str, Any], ids: list[int]) -> Result:
        """Take the parts of these transcripts through their stages, here."""
        of = TranscriptPart.objects.filter(transcript__in=ids, state=PartState.WAITING).count()
        part_ids: list[int] = []

        def progress(part: TranscriptPart) -> None:
            part_ids.append(part.pk)
            self.stderr.write(f"{len(part_ids):,} of {of:,}: {part}: {part.state}")

        counts = pipeline.drain(
            settings.CLAUDEOPS_HOST, turns_of, repeats, transcripts=ids, seconds=FOREVER, after=progress
        )
        rows = Fact.objects.filter(segment__part__in=part_ids).order_by().values_list("outcome").annotate(Count("pk"))
        facts = {outcome or "waiting": number for outcome, number in rows}
        problems = _problems(ids)
        stopped = {"failed": counts.failed, "unreadable": counts.unreadable}
        waiting = of - counts.done - sum(stopped.values())
        data["observed"] = {
            "parts": {"done": counts.done, "waiting": waiting, **stopped},
            "facts": facts,
            "problems": problems,
        }
        outcomes = [one for one in FactOutcome if one.value in facts]
        words = ", ".join(f"{facts[one.value]:,} {one.label}" for one in outcomes)
        of_facts = quantity(sum(facts.values()), "fact") + (f" ({words})" if words else "")
        lines = [f"Observed: {counts.done:,} of {of:,} parts, {of_facts}.", *problems]
        if counts.unreadable:
            some = quantity(counts.unreadable, "part")
            lines.append(
                f"Not observed: {some}. The workers ask the observer again later; the same command asks it now."
            )
        if waiting:
            lines.append("What waits is caught up by the workers, or by the same command later.")
        return Result(data, "\n".join(lines), LOOK, exit_code=1 if any(stopped.values()) else 0)


LOOK = {"manage.py doctor": "see how much waits"}


def _files(paths: Sequence[str], backfill: bool) -> Iterator[Path]:
    """Yield the files to look at, each once, those of a folder from the oldest on. Raises Refusal."""
    if not paths and not backfill:
        raise Refusal("usage", "Say what to observe: files, folders, or --backfill.", "manage.py observe --help")
    folders = [] if paths else folders_here()
    if not paths and not folders:
        raise Refusal(
            "not_found",
            "No folder of transcripts is known here.",
            "Name one, such as ~/.claude/projects, or install hooks: manage.py hook install --observe",
        )
    real_paths: set[Path] = set()
    for one in [*paths, *folders]:
        path = Path(one).expanduser()
        inside = files.transcripts_in(path) if path.is_dir() else [path]
        if not path.exists():
            raise Refusal("not_found", f"There is no {path}.", "Name a file or a folder.")
        for file in inside:
            if (real := file.resolve()) not in real_paths:
                real_paths.add(real)
                yield file
    if not real_paths:
        raise Refusal("not_found", "No transcript (*.jsonl) is there.", "Name a file, or another folder.")


def _problems(ids: Sequence[int]) -> list[str]:
    """Say why parts of these transcripts wait or failed, each reason once."""
    rows = Stage.objects.filter(part__transcript__in=ids, state__in=(StageState.WAITING, StageState.FAILED))
    stages = rows.exclude(problem="").order_by("pk").values_list("state", "name", "problem")
    return list(
        dict.fromkeys(f"A part {WORDS[state]} at the stage {name}: {problem}" for state, name, problem in stages)
    )


def _counted(looked: Sequence[Looked]) -> str:
    counts = Counter(
        "new"
        if one.is_wanted and one.arrival.outcome is Outcome.NEW
        else "with a new tail"
        if one.is_wanted
        else "left out"
        if one.arrival.why
        else "observed before, or without words"
        for one in looked
    )
    return (
        f"{quantity(len(looked), 'file')}: " + ", ".join(f"{number:,} {what}" for what, number in counts.items()) + "."
    )


def _left_out(looked: Sequence[Looked]) -> Iterator[str]:
    """Say which files are left out and why, some for each reason."""
    by_reason: dict[str, list[Looked]] = {}
    for one in looked:
        if one.arrival.why:
            by_reason.setdefault(one.arrival.why, []).append(one)
    for why, some in by_reason.items():
        named = ", ".join(str(one.path) for one in some[:SHOWN])
        more = f" and {len(some) - SHOWN:,} more" if len(some) > SHOWN else ""
        yield f"Left out: {named}{more}: {why}"


def _of_the_budget(price: Estimate) -> Iterator[str]:
    remaining = spent(timezone.now(), [OBSERVER])[OBSERVER].left
    if remaining is not None and price.usd is not None and price.usd > remaining:
        yield f"Today ${remaining:.2f} may still be spent on it; the rest waits for the next days."


def _data(one: Looked) -> dict[str, Any]:
    return {
        "path": str(one.path),
        "outcome": one.arrival.outcome,
        "why": one.arrival.why,
        "transcript": one.arrival.transcript and one.arrival.transcript.pk,
        "parts": one.arrival.planned,
        "characters": one.arrival.characters,
    }
