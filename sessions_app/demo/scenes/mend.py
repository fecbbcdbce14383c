"""homelab-mend: tier 3, when tier 2 knows a cause. Restarts or recreates jellyfin and checks that it helped.

The scenes name no cause: they follow either one that tier 2 finds.
"""

from __future__ import annotations

from sessions_app.demo.recorder import Recorder
from sessions_app.demo.scenes.house import HEALTH, OPUS, Scene, answer, found

HANGS = "curl: (28) Operation timed out after 5000 milliseconds with 0 bytes received"
STREAMS = "docker exec jellyfin ls /cache/transcodes | cut -d- -f1 | sort -u | wc -l"


def restart(r: Recorder) -> None:
    """A restart helps."""
    r.say("I confirm the failure before I touch anything, and whether somebody is watching.", after=1.8)
    r.bash(f"curl -sS -m 5 http://127.0.0.1:8096/health; {STREAMS}", f"{HANGS}\n0", "Failure and viewers", took=5.0)
    r.say(
        "Still hanging, nobody is watching, and the limits in my instructions allow a restart of jellyfin. The "
        "smallest change that can work is exactly that.",
        after=3.0,
    )
    r.bash(
        "docker compose -f /srv/homelab/compose.yaml restart jellyfin",
        " Container jellyfin  Started",
        "Restart jellyfin",
        took=4.0,
    )
    r.say("Restarted. It is known to need a minute, so I wait before I judge it.", after=2.0)
    r.bash(
        "until curl -fsS -m 2 http://127.0.0.1:8096/health; do read -rt 5 < /dev/zero; done; "
        "docker logs --since 2m jellyfin 2>&1 | grep 'Startup complete'",
        "Healthy\n[09:31:48] [INF] Main: Startup complete 0:01:01.2030",
        "Wait until it is healthy",
        took=17.0,
    )
    r.bash(f"{HEALTH} https://media.home.lan/", "302 0.029s", "jellyfin through caddy", after=1.2)
    r.say(
        "jellyfin answers again, also through caddy.\n\n"
        "[COOLDOWN:restart:jellyfin] success — restarted by docker compose, healthy after 61 seconds\n"
        "[MEMORY:remediation:jellyfin] A restart cures a hang when nobody is watching; it loses nothing\n"
        "[MEMORY:timing:jellyfin] After a restart it takes 1 minute to start\n\n"
        "[EVENT:info:jellyfin] Restarted because it hung; healthy again",
        after=4.8,
    )
    r.answer(
        answer(
            "jellyfin was restarted and is healthy again; nothing else was touched.",
            found(jellyfin="healthy: restarted, 302 through caddy"),
        ),
        after=4.2,
    )


def recreate(r: Recorder) -> None:
    """A restart does not help, recreating the container does."""
    r.say("Confirming the failure, and whether somebody is watching.", after=1.8)
    r.bash(f"curl -sS -m 5 http://127.0.0.1:8096/health; {STREAMS}", f"{HANGS}\n0", "Failure and viewers", took=5.0)
    r.bash(
        "docker compose -f /srv/homelab/compose.yaml restart jellyfin && "
        "docker inspect -f '{{.State.Status}} {{.State.ExitCode}}' jellyfin",
        " Container jellyfin  Started\nexited 139",
        "Restart jellyfin",
        took=7.0,
        after=2.8,
    )
    r.say(
        "It crashed while starting.\n\n"
        "[COOLDOWN:restart:jellyfin] failure — started and exited with code 139 after four seconds",
        after=2.8,
    )
    r.bash(
        "docker logs --since 1m jellyfin 2>&1 | tail -2",
        "[09:33:20] [FTL] Main: Unhandled exception: image cache is corrupt\nSegmentation fault (core dumped)",
        "Why it crashed",
        after=1.4,
    )
    r.say(
        "Something in the container's own layer is broken; its data is on volumes. Recreating it is the next step.",
        after=3.2,
    )
    r.bash(
        "docker compose -f /srv/homelab/compose.yaml up -d --force-recreate jellyfin",
        " Container jellyfin  Recreated\n Container jellyfin  Started",
        "Recreate the container from the same image",
        took=5.0,
    )
    r.bash(
        "until curl -fsS -m 2 http://127.0.0.1:8096/health; do read -rt 5 < /dev/zero; done",
        "Healthy",
        "Wait until it is healthy",
        took=16.0,
        after=1.2,
    )
    r.say(
        "Healthy, on the same image and the same data.\n\n"
        "[COOLDOWN:redeployment:jellyfin] success — recreated from the same image, healthy after 58 seconds\n"
        "[MEMORY:remediation:jellyfin] When a start ends with exit code 139, recreate the container with "
        "docker compose up -d --force-recreate\n\n"
        "[EVENT:warning:jellyfin] Crashed on a restart and had to be recreated; its data is intact",
        after=4.6,
    )
    r.answer(
        answer(
            "A restart of jellyfin failed with exit code 139; recreating its container mended it.",
            found(jellyfin="healthy: recreated from the same image"),
        ),
        after=4.0,
    )


SCENES = (
    Scene("homelab-mend", "01-restart", OPUS, restart),
    Scene("homelab-mend", "02-recreate", OPUS, recreate),
)
