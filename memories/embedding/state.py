"""Which embedder the settings ask for, which one answers, and why none does.

An embedder is loaded once a process and again when its files changed: a model that appears on the disk is found
without a restart, one that disappears is off at once. What answers is the model whose vectors are complete; while
another one is being built, that is still the old one.
"""

from __future__ import annotations

from memories.embedding.base import Embedder, SemanticOff
from memories.models import EmbeddingModel, ModelState


def active_model() -> EmbeddingModel | None:
    """The model whose vectors answer now, if there is one."""
    return EmbeddingModel.objects.filter(state=ModelState.ACTIVE).first()


def wanted() -> Embedder:
    """The embedder that the settings ask for, whether its vectors are there or not. Raises SemanticOff."""
    raise SemanticOff("the embedders are not built in yet")


def current() -> Embedder:
    """The embedder whose vectors answer. Raises SemanticOff with the reason when there is none."""
    return wanted()


def off_reason() -> str | None:
    """Why semantic search is off, as "semantic search is off: …"; None when it is on. Cheap: loads no model."""
    try:
        current()
    except SemanticOff as off:
        return str(off)
    return None


def reset() -> None:
    """Forget what was loaded: after an installation, and between tests."""
