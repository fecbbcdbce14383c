"""Arguments of the verbs of `manage.py memory`."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction

from memories.capture.reasons import Reason
from memories.injection.windows import DAYS
from memories.models import Exposure, Source, Trust
from memories.recall.rerank import NAMES as PROFILES
from memories.taxonomy import KNOWLEDGE, TAXONOMIES

MOST_LISTED = 10_000

MOST_SHOWN = 200
"""Held memories in a list: for each the nearest known one is looked for."""
WINDOW = 'such as "first monday", "12-24..12-26" or "mon 08:00-12:00 Europe/Vienna"'


def memory_id(parser: ArgumentParser) -> None:
    parser.add_argument("memory", metavar="ID", help="the memory's number or UUID")


def by(parser: ArgumentParser) -> None:
    parser.add_argument("--by", default="", help="the actor of the change (default: your account)")
    parser.add_argument("--reason", default="", help="why, for the history")


def add(parser: ArgumentParser) -> None:
    parser.add_argument("observation", metavar="TEXT", help="what was observed, in one sentence; - reads it from stdin")
    parser.add_argument("--category", required=True, help="timing, dependency, behavior, remediation, maintenance")
    parser.add_argument("--service", help="default: general")
    parser.add_argument("--confidence", type=float, help="from 0 to 1 (default 0.7)")
    parser.add_argument("--taxonomy", default="ops", help=f"one of {', '.join(TAXONOMIES)} (default ops)")
    parser.add_argument("--project", help="a project's slug (default: for all)")
    parser.add_argument("--agent", metavar="NAME", help="whose memory it is (default: every agent's)")
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="may be given several times")
    parser.add_argument("--persistent", action="store_true", help="never decays")
    parser.add_argument("--surface", metavar="WINDOW", default="", help=f"when it is told: {WINDOW}")
    by(parser)


def filters(parser: ArgumentParser) -> None:
    parser.add_argument("--service", help="general for those without one")
    parser.add_argument("--category")
    parser.add_argument("--taxonomy")
    parser.add_argument("--project", help="a project's slug, or global")
    parser.add_argument("--text", help="words that the observation contains")
    parser.add_argument("--source", choices=Source.values)
    parser.add_argument("--exposure", choices=Exposure.values, help="what its session had read before")
    parser.add_argument("--trust", choices=Trust.values, help="the least trusted of its lineage")
    parser.add_argument("--session", help="the session that created it")
    parser.add_argument("--tier", choices=("0", "1", "2", "3"))


def narrowing(parser: ArgumentParser) -> None:
    filters(parser)
    state = parser.add_mutually_exclusive_group()
    state.add_argument("--inactive", action="store_true", help="only inactive ones")
    state.add_argument("--held", action="store_true", help="only those held for review")
    state.add_argument("--unconfirmed", action="store_true", help="only those that no prompt is told until confirmed")
    state.add_argument("--all", action="store_true", help="all of them")


def listing(parser: ArgumentParser) -> None:
    narrowing(parser)
    parser.add_argument("--limit", type=int, default=50, help=f"how many, last confirmed first (1 to {MOST_LISTED})")


def edit(parser: ArgumentParser) -> None:
    memory_id(parser)
    parser.add_argument("--observation", metavar="TEXT", help="new text; the confidence stays")
    parser.add_argument("--service", help="general removes it")
    parser.add_argument("--category")
    parser.add_argument(
        "--confidence", type=float, help="from 0 to 1; at or above the threshold it reactivates the memory"
    )
    parser.add_argument("--tag", action="append", metavar="TAG", help="the new tags; may be given several times")
    parser.add_argument("--persistent", action=BooleanOptionalAction, default=None, help="whether it never decays")
    parser.add_argument("--surface", metavar="WINDOW", help=f"when it is told: {WINDOW}; empty: by its rank")
    parser.add_argument("--expires", metavar="WHEN", help="a day like 2026-12-31 (its end, UTC), or never")
    verb = parser.add_mutually_exclusive_group()
    verb.add_argument("--deactivate", action="store_true", help="take it out of use")
    verb.add_argument("--reactivate", action="store_true", help="use it again")
    verb.add_argument("--approve", action="store_true", help="allow a held memory, confirm an unconfirmed one")
    by(parser)


def surfacing(parser: ArgumentParser) -> None:
    parser.add_argument("--days", type=int, default=DAYS, help=f"how far to look, 1 to 366 (default {DAYS})")
    parser.add_argument("--project", help="a project's slug: that project plus global memories (default: all)")


def context(parser: ArgumentParser) -> None:
    parser.add_argument("--tier", type=int, choices=(1, 2, 3), help="default: the agent's, or 1")
    parser.add_argument("--project", help="a project's slug (default: the agent's)")
    parser.add_argument("--task", metavar="TEXT", default="", help="the task or alert of the session (- reads stdin)")
    parser.add_argument("--agent", metavar="SLUG", help="the agent of the session, whose own memories a task may find")
    parser.add_argument("--explain", action="store_true", help="say for each memory why it is in or out")


def decay(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would change")


def reclassify(parser: ArgumentParser) -> None:
    parser.add_argument("--taxonomy", required=True, choices=[KNOWLEDGE.slug], help="the taxonomy with a new version")
    parser.add_argument("--dry-run", action="store_true", help="only say what would change; asks no model")
    parser.add_argument("--by", default="", help="the actor of the changes (default: your account)")


def held(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action", choices=("list", "allow", "edit", "discard", "undo"), help="edit corrects one and allows it"
    )
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="numbers or UUIDs of held memories; for undo the number that was printed"
    )
    parser.add_argument("--observation", metavar="TEXT", help="the corrected text, for edit")
    parser.add_argument("--because", metavar="CODE", choices=list(Reason), help="only those held for this reason")
    filters(parser)
    of_many(parser)
    by(parser)


def discarded(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action", choices=("list", "allow", "confirm", "undo"), help="confirm says that the gate was right"
    )
    parser.add_argument("ids", nargs="*", metavar="ID", help="numbers of discards, as list shows them")
    parser.add_argument("--observation", metavar="TEXT", help="the corrected text, to allow one")
    parser.add_argument("--because", metavar="CODE", choices=list(Reason), help="only those discarded for this reason")
    parser.add_argument("--channel", help="over which they arrived: text, structured, mcp, api, import, file, observer")
    parser.add_argument("--project", help="a project's slug, or global")
    parser.add_argument("--text", help="words that they contain")
    of_many(parser)
    parser.add_argument("--by", default="", help="who decides (default: your account)")


def of_many(parser: ArgumentParser) -> None:
    parser.add_argument("--all-matching", action="store_true", help="all that the filters find, instead of IDs")
    parser.add_argument("--yes", action="store_true", help="do it; without it --all-matching says what would be done")
    parser.add_argument("--limit", type=int, default=20, help=f"how many list shows (1 to {MOST_SHOWN})")


def export(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: stdout")


def import_(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what export wrote; - reads stdin")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="take also rows that this installation did not sign as they are, without the gate",
    )
    by(parser)


def promote(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="numbers or UUIDs of project memories")
    by(parser)


def copy(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="numbers or UUIDs of project memories")
    parser.add_argument("--to", required=True, metavar="SLUG", help="the project that gets the copies")
    by(parser)


def purge(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="numbers or UUIDs")
    parser.add_argument(
        "--inactive-days", type=int, metavar="DAYS", help="inactive ones not confirmed for so many days"
    )
    parser.add_argument(
        "--erase", action="store_true", help="delete the history too, so that no record of these memories is left"
    )
    parser.add_argument(
        "--yes", action="store_true", help="delete; without it the command only says what would be deleted"
    )
    by(parser)


def recall(parser: ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="a question, an error, a name; - reads stdin")
    parser.add_argument(
        "--project", help="a project's slug: that project plus global memories; global: only those (default: all)"
    )
    parser.add_argument("--agent", help="an agent's slug: its own memories and those without an agent (default: all)")
    parser.add_argument("--service", help="general for those without one")
    parser.add_argument("--category")
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="all of these; several times")
    parser.add_argument("--taxonomy")
    parser.add_argument("--limit", type=int, help="how many (1 to 100); default: set by the profile")
    parser.add_argument("--profile", default="balanced", choices=PROFILES, help="how much comes back")
    parser.add_argument("--as-of", metavar="WHEN", help="what was known at a day or time like 2026-11-21T23:00 (UTC)")
    parser.add_argument("--include-hold", action="store_true", help="include memories held for review")
    parser.add_argument(
        "--include",
        action="append",
        default=[],
        choices=("narratives",),
        help="also what happened in observed sessions",
    )
    parser.add_argument("--explain", action="store_true", help="show the score details and what was left out")


def rebuild(parser: ArgumentParser) -> None:
    parser.add_argument("--from-git", action="store_true", required=True, help="from the MEMORY.md files in git")
    parser.add_argument("--project", metavar="SLUG", help="that project's file (default: all of this host)")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be brought back")
    parser.add_argument("--by", default="", help="the actor of the change (default: your account)")
