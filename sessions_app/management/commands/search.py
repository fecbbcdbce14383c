"""`manage.py search`: memories, sessions, events, journal, decisions and skills at once."""

from __future__ import annotations

from collections.abc import Sequence

from claudeops.lib.cli import Result, SoleCommand, arg, current_user
from memories.recall.service import by_person
from sessions_app.queries.search import KINDS, MOST_COUNTED, search


class Command(SoleCommand):
    help = "Search memories (by recall), sessions, events, journal, decisions and skills (by every word) at once."

    def run(
        self,
        text: Sequence[str] = arg("what is looked for"),
        *,
        kind: str = arg("only this kind", choices=list(KINDS), default=""),
        limit: int = arg("hits of a kind", default=5),
    ) -> Result:
        found = search(by_person(current_user()), " ".join(text), kinds=[kind] if kind else (), limit=max(1, limit))
        lines = []
        for one in found:
            if one.count:
                lines.append(f"{one.name.capitalize()} ({_count(one.count)})")
                lines += [f"  {hit.title[:160]}" + (f"  [{hit.beside}]" if hit.beside else "") for hit in one.hits]
        return Result(found, "\n".join(lines) or "Nothing has these words.")


def _count(number: int) -> str:
    return f"{number} or more" if number >= MOST_COUNTED else str(number)
