"""The homelab itself: its services, what its commands print, and the form of a structured answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sessions_app.demo.recorder import Recorder

SERVICES = {
    "caddy": "caddy:2.10",
    "jellyfin": "jellyfin:10.10.7",
    "postgres": "postgres:17.2",
    "adguard": "adguard:0.107",
}
HAIKU, SONNET, OPUS = "claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5"

PS = 'docker ps --format "table {{.Names}}\\t{{.Image}}\\t{{.Status}}"'
WIREGUARD = "systemctl status wg-quick@wg0 --no-pager --lines=0"
WIREGUARD_UP = (
    "● wg-quick@wg0.service - WireGuard via wg-quick(8) for wg0\n"
    "     Loaded: loaded (/usr/lib/systemd/system/wg-quick@.service; enabled)\n"
    "     Active: active (exited) since Thu 2026-11-19 21:14:02 UTC; 11h ago"
)
HEALTH = "curl -sS -o /dev/null -m 10 -w '%{http_code} %{time_total}s\\n'"


@dataclass(frozen=True, slots=True)
class Scene:
    """One recorded session: whose, its file's name, the model, and what happens in it."""

    agent: str
    name: str
    model: str
    play: Callable[[Recorder], None]

    @property
    def file(self) -> str:
        return f"{self.agent}/{self.name}.jsonl"

    def text(self) -> str:
        recorder = Recorder(self.file, self.model)
        self.play(recorder)
        return recorder.text()


def containers(**status: str) -> str:
    """The table of `docker ps`: every container up and healthy, but for those given with their status."""
    rows = [("NAMES", "IMAGE", "STATUS")]
    rows += [(name, image, status.get(name, "Up 11 hours (healthy)")) for name, image in SERVICES.items()]
    return "\n".join(f"{name:<10} {image:<18} {state}" for name, image, state in rows)


def found(**checks: str) -> list[dict[str, str]]:
    """`services_checked`: every service healthy, but for those given as "status: detail"."""
    listed = []
    for name in (*SERVICES, "wireguard"):
        status, _, detail = checks.get(name, "healthy").partition(": ")
        listed.append({"name": name, "status": status, **({"detail": detail} if detail else {})})
    return listed


def answer(
    summary: str,
    services: list[dict[str, str]],
    *,
    events: tuple[Mapping[str, str], ...] = (),
    memories: Mapping[str, str] | None = None,
    escalation: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The structured answer that the response schema asks for."""
    return {
        "summary": summary,
        "events": [dict(event) for event in events],
        "memories": [{"key": key, "value": value} for key, value in (memories or {}).items()],
        "escalation": {"needed": True, **escalation} if escalation else {"needed": False},
        "services_checked": services,
    }
