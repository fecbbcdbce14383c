"""homelab-investigate: tier 2, when tier 1 hands something over. Finds a cause; may change nothing."""

from __future__ import annotations

from sessions_app.demo.recorder import Recorder
from sessions_app.demo.scenes.house import HEALTH, SONNET, Scene, answer, found

HANGS = "curl: (28) Operation timed out after 10000 milliseconds with 0 bytes received"


def hung_transcode(r: Recorder) -> None:
    """The cause: a transcode that cannot write any more."""
    r.say("Tier 1 reports that jellyfin hangs. I confirm it first.", after=1.6)
    r.bash(f"{HEALTH} http://127.0.0.1:8096/health", HANGS, "Does it still hang?", took=5.0, code=28)
    r.think(
        "The container is up, so this is inside the process. Starvation began with a transcode. Candidates: ffmpeg "
        "blocked on disk, the database locked, memory. Look at processes and at the transcode directory first."
    )
    r.bash(
        "docker top jellyfin -eo pid,stat,etime,comm | grep -E 'PID|ffmpeg'",
        "    PID STAT     ELAPSED COMMAND\n  48213 D          06:12 ffmpeg\n  48377 D          05:48 ffmpeg",
        "What ffmpeg does",
        after=1.2,
    )
    r.bash(
        "docker exec jellyfin df -h /cache /config",
        "Filesystem      Size  Used Avail Use% Mounted on\ntmpfs           4.0G  4.0G     0 100% /cache\n"
        "/dev/sda2       118G   61G   52G  55% /config",
        "Room for transcodes",
        after=2.6,
    )
    r.say(
        "Both ffmpeg processes wait for the disk: /cache is a memory disk of 4 GB and it is full, so every transcode "
        "blocks and takes a request thread with it.\n\n"
        "[MEMORY:behavior:jellyfin] Hangs when its transcode cache is full, with ffmpeg waiting for the disk\n\n"
        "[EVENT:warning:jellyfin] /cache is full (4.0 of 4.0 GB)",
        after=5.4,
    )
    r.answer(
        answer(
            "jellyfin hangs because its transcode cache is full. A restart empties it; I may not restart anything.",
            found(jellyfin="unhealthy: transcode cache full, requests starve"),
            escalation={
                "reason": "jellyfin must be restarted to empty its transcode cache",
                "context": (
                    "/cache (tmpfs, 4 GB) is at 100 %. Two ffmpeg processes hang in state D. Nobody is watching: the "
                    "only two streams are the ones that hang. A restart is safe and empties the cache."
                ),
                "failed_checks": ["jellyfin: GET /health timed out after 10 s", "jellyfin: /cache 100 % full"],
            },
        ),
        after=5.0,
    )


def locked_library(r: Recorder) -> None:
    """The cause: a scan that holds the library's database. One command is refused on the way."""
    r.say("jellyfin hangs, says tier 1. I look at the process and at what it waits for.", after=1.8)
    r.bash(f"{HEALTH} http://127.0.0.1:8096/health", HANGS, "Does it still hang?", took=5.0, code=28)
    r.denied("docker exec jellyfin kill -QUIT 1", "Ask the process for a stack dump")
    r.say("That needs a right I do not have here, and should not have. The log will do.", after=2.2)
    r.bash(
        "docker logs --since 15m jellyfin 2>&1 | grep -iE 'scan|locked' | tail -4",
        "[09:26:55] [INF] LibraryMonitor: scheduled library scan started\n"
        "[09:27:40] [ERR] SQLite: database is locked (5)\n[09:28:10] [ERR] SQLite: database is locked (5)\n"
        "[09:28:55] [ERR] SQLite: database is locked (5)",
        "Scans and locks",
    )
    r.bash(
        "docker stats --no-stream --format '{{.CPUPerc}} {{.MemUsage}}' jellyfin",
        "0.31% 1.9GiB / 15.5GiB",
        "Is it working at all?",
        took=1.6,
        after=1.8,
    )
    r.say(
        "A library scan took the lock on the database and does not move: no CPU, no progress for two minutes. Every "
        "request waits behind it.\n\n"
        "[MEMORY:behavior:jellyfin] A library scan that stalls keeps the database locked, and every request waits\n\n"
        "[EVENT:warning:jellyfin] A library scan holds the database lock without making progress",
        after=5.0,
    )
    r.answer(
        answer(
            "jellyfin waits for a stalled library scan. Only a restart frees the lock, which is tier 3's to do.",
            found(jellyfin="unhealthy: database locked by a stalled scan"),
            memories={
                "jellyfin:behavior": "A library scan that stalls keeps the database locked, and every request waits"
            },
            escalation={
                "reason": "jellyfin must be restarted: a stalled library scan keeps its database locked",
                "context": (
                    "0.3 % CPU, no progress in the log for two minutes, 'database is locked' every 45 seconds. Nothing "
                    "is written, so a restart loses nothing. No stream is playing."
                ),
                "failed_checks": ["jellyfin: GET /health timed out after 10 s", "jellyfin: database is locked"],
            },
        ),
        after=4.6,
    )


SCENES = (
    Scene("homelab-investigate", "01-hung-transcode", SONNET, hung_transcode),
    Scene("homelab-investigate", "02-locked-library", SONNET, locked_library),
)
