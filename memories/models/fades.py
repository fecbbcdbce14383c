"""When a memory becomes inactive unless it is confirmed, as SQL that an index serves.

The same as `lifecycle.rules` and `history.forecast` compute in Python, by the numbers of `taxonomy.py`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import BigIntegerField, F, Func

from memories.taxonomy import TAXONOMIES

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

NEVER = 253_402_300_799
"""The end of the year 9999, in seconds since the epoch: of what does not fade, and of what is inactive."""

COLUMNS = ("active", "persistent", "verdict", "taxonomy", "category", "confidence", "updated_at", "decayed_until")


def _seconds(span: timedelta) -> int:
    return round(span.total_seconds())


DECAYS = tuple(
    (
        *(slug, round((taxonomy.inactive_below or 0.0) * 1_000_000), round(taxonomy.decay.step * 1_000_000)),
        *(_seconds(taxonomy.decay.grace), _seconds(taxonomy.decay.every)),
    )
    for slug, taxonomy in TAXONOMIES.items()
    if taxonomy.decay is not None
)
"""(taxonomy, threshold and step in millionths, grace and period in seconds) of those that decay."""


class FadesAt(Func):
    """The time in whole seconds since the epoch, NEVER for none.

    Without query parameters, or SQLite would not use the index. The policy is an argument, so that a change of it is a
    change of the index, which `makemigrations` finds.
    """

    def __init__(self, *columns: Any, decays: tuple[Any, ...]) -> None:
        self.decays = decays
        super().__init__(*columns, output_field=BigIntegerField())

    def as_sql(  # type: ignore[override]
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, list[Any]]:
        names = (*COLUMNS, "expires_at")
        sql = {name: compiler.compile(column)[0] for name, column in zip(names, self.source_expressions, strict=True)}
        postgresql = connection.vendor == "postgresql"
        least, greatest = ("LEAST", "GREATEST") if postgresql else ("MIN", "MAX")

        def epoch(column: str) -> str:
            if postgresql:  # of a time without zone, because an index takes only what no setting changes
                return f"CAST(ROUND(EXTRACT(EPOCH FROM ({column} AT TIME ZONE 'UTC'))) AS bigint)"
            return f"CAST(ROUND((julianday({column}) - 2440587.5) * 86400) AS integer)"

        confirmed, own = epoch(sql["updated_at"]), f"COALESCE({epoch(sql['expires_at'])}, {NEVER})"
        cases = []
        for slug, limit, step, grace, every in self.decays:
            start = f"{greatest}({confirmed} + {grace}, COALESCE({epoch(sql['decayed_until'])}, 0))"
            margin = f"CAST(ROUND({sql['confidence']} * 1000000) AS integer) - {limit}"
            periods = f"CASE WHEN {margin} < 0 THEN 1 ELSE ({margin}) / {step} + 1 END"
            when = f"{sql['taxonomy']} = '{slug}' AND {sql['verdict']} <> 'hold'"
            cases.append(f"WHEN {when} THEN {least}({own}, {start} + {every} * ({periods}))")
        first = f"WHEN NOT {sql['active']} THEN {NEVER} WHEN {sql['persistent']} THEN {own}"
        return f"CASE {first} {' '.join(cases)} ELSE {own} END", []


FADES_AT = FadesAt(*(F(name) for name in (*COLUMNS, "expires_at")), decays=DECAYS)
