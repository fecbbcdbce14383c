"""What the homelab's agents say and do: one scene a stream, in the order in which an agent's folder is played.

A scene is played round and round, beside scenes of other agents, so each one must be true whenever it comes.
"""

from __future__ import annotations

from sessions_app.demo.scenes import investigate, mend, nightly, watch
from sessions_app.demo.scenes.house import Scene

SCENES: tuple[Scene, ...] = (*watch.SCENES, *investigate.SCENES, *mend.SCENES, *nightly.SCENES)

__all__ = ["SCENES", "Scene"]
