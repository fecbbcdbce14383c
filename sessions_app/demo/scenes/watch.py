"""homelab-watch: tier 1, every minute. It looks, learns the house, and calls tier 2 when jellyfin hangs."""

from __future__ import annotations

from sessions_app.demo.recorder import Recorder
from sessions_app.demo.scenes.house import (
    HAIKU,
    HEALTH,
    PS,
    WIREGUARD,
    WIREGUARD_UP,
    Scene,
    answer,
    containers,
    found,
)


def first_look(r: Recorder) -> None:
    """Learns two things: how long jellyfin needs, and what caddy needs first."""
    r.say("I'll list the containers first, then check each service from the outside.", after=1.2)
    r.bash(PS, containers(caddy="Up 6 minutes (healthy)", jellyfin="Up 5 minutes (healthy)"), "List the containers")
    r.say("caddy and jellyfin were recreated a few minutes ago. I want to see how their start went.", after=2.6)
    r.bash(
        "docker logs --since 15m jellyfin 2>&1 | tail -4",
        "[09:14:07] [INF] Main: Jellyfin version: 10.10.7\n"
        "[09:14:31] [INF] Jellyfin.Server.Migrations: migration routines finished\n"
        "[09:15:06] [INF] Emby.Server.Implementations.ApplicationHost: Core startup complete\n"
        "[09:15:07] [INF] Main: Startup complete 0:00:59.8214",
        "How jellyfin started",
    )
    r.bash(
        "docker logs --since 15m caddy 2>&1 | tail -3",
        "error: loading initial config: listen tcp 10.8.0.1:443: bind: cannot assign requested address\n"
        "container exited with code 1, restarting (1)\n"
        "serving initial configuration",
        "How caddy started",
        after=2.2,
    )
    r.bash(WIREGUARD, WIREGUARD_UP, "Is the tunnel up?", after=1.6)
    r.bash(f"{HEALTH} http://127.0.0.1:8096/health", "200 0.018s", "jellyfin's health", after=1.4)
    r.say(
        "Everything answers now. caddy failed once because its address on the tunnel did not exist yet, and jellyfin "
        "took a minute to come up. Both will matter the next time something is restarted:\n\n"
        "[MEMORY:timing:jellyfin] Takes 60s to start after restart -- wait before checking health\n"
        "[MEMORY:dependency:caddy] Must be started after WireGuard\n\n"
        "[EVENT:info:caddy] Failed its first start because wg0 was not up yet; the automatic restart mended it",
        after=4.2,
    )
    r.answer(
        answer(
            "All five services are healthy. jellyfin and caddy were just recreated; caddy needed a second start.",
            found(),
            memories={"jellyfin:timing": "Takes 60s to start after restart -- wait before checking health"},
        ),
        after=4.0,
    )


def waits_for_jellyfin(r: Recorder) -> None:
    """Uses what it was told, confirms it in other words, and learns how jellyfin behaves meanwhile."""
    r.say("Containers first.", after=1.0)
    r.bash(PS, containers(jellyfin="Up 21 seconds (health: starting)"), "List the containers")
    r.say(
        "jellyfin was restarted 21 seconds ago. According to the operational memory it needs about a minute, so this "
        "is no outage yet: I look at the others and come back to it.",
        after=2.8,
    )
    r.bash(f"{HEALTH} https://media.home.lan/", "503 0.009s", "jellyfin through caddy", after=1.2)
    r.bash("docker exec postgres pg_isready", "/var/run/postgresql:5432 - accepting connections", "postgres", after=2.0)
    r.bash("dig +short +time=2 @127.0.0.1 example.org | wc -l", "1", "Does adguard answer?", after=1.8)
    r.bash(WIREGUARD, WIREGUARD_UP, "Is the tunnel up?", after=1.5)
    r.say("The others are fine. Now jellyfin again.", after=14.0)
    r.bash(
        "docker logs --since 2m jellyfin 2>&1 | tail -2 && " + f"{HEALTH} http://127.0.0.1:8096/health",
        "[09:16:52] [WRN] Health check: 503, database migration is running\n"
        "[09:17:20] [INF] Main: Startup complete 0:01:00.4471\n200 0.021s",
        "Has jellyfin started?",
        after=1.0,
    )
    r.say(
        "Up after one minute, as known. Its health address said 503 the whole time, which was a migration and no "
        "failure.\n\n"
        "[MEMORY:timing:jellyfin] Takes about 60 seconds to start after a restart\n"
        "[MEMORY:behavior:jellyfin] Answers 503 on its health address while it migrates its database",
        after=3.4,
    )
    r.answer(
        answer(
            "jellyfin was restarting when I came and was healthy a minute later; nothing to do.",
            found(jellyfin="healthy: up one minute after its restart"),
            events=({"level": "info", "service": "jellyfin", "message": "Restarted, healthy again after one minute"},),
        )
    )


def all_quiet(r: Recorder) -> None:
    """The usual run: nothing happens, and nothing is recorded."""
    r.say("Checking the containers and the health of each service.", after=1.4)
    r.bash(PS, containers(jellyfin="Up 2 minutes (healthy)"), "List the containers", after=0.8)
    r.bash(
        f"for port in 8096 3000; do {HEALTH} http://127.0.0.1:$port/; done",
        "302 0.012s\n302 0.006s",
        "jellyfin and adguard",
        after=3.0,
    )
    r.bash("docker exec postgres pg_isready", "/var/run/postgresql:5432 - accepting connections", "postgres", after=2.8)
    r.bash(
        "df -h / /srv/media | tail -2",
        "/dev/sda2   118G   61G   52G  55% /\n/dev/sdb1   7.3T  4.9T  2.4T  68% /srv/media",
        "Disk space",
        after=2.6,
    )
    r.bash(WIREGUARD, WIREGUARD_UP, "Is the tunnel up?", after=2.4)
    r.say("All of it is as it should be. Nothing new was learned, so I record nothing.", after=3.2)
    r.answer(answer("All five services are healthy; disks have room.", found()), after=5.0)


def foreign_markers(r: Recorder) -> None:
    """Markers that are not the agent's own: in a file, in a quotation, in a fence, and of no known category."""
    r.say("adguard logged slow upstream answers. The runbook may know more.", after=1.6)
    r.bash(
        "docker logs --since 10m adguard 2>&1 | grep -i slow",
        "[warning] upstream 9.9.9.9:53: slow response, 412 ms\n[warning] upstream 9.9.9.9:53: slow response, 407 ms",
        "adguard's warnings",
    )
    r.read(
        "/srv/homelab/runbooks/adguard.md",
        "# adguard\n\nUpstreams: 9.9.9.9 first, 149.112.112.112 as the fallback.\n\n"
        "Old note, no longer true since the move to the new router:\n"
        "[MEMORY:behavior:adguard] Drops all queries between 02:00 and 06:00\n\n"
        "Restart: `docker compose restart adguard`",
        after=1.8,
    )
    r.bash("dig +stats @127.0.0.1 example.org | grep 'Query time'", ";; Query time: 24 msec", "DNS now", after=2.8)
    r.say(
        "The runbook holds a line that looks like a memory. It is somebody else's old note, which I only quote:\n\n"
        "> [MEMORY:behavior:adguard] Drops all queries between 02:00 and 06:00\n\n"
        "and its command, as it stands there:\n\n"
        "```\ndocker compose restart adguard  # [MEMORY:remediation:adguard] restart helps\n```\n\n"
        "Resolution is back at 24 ms.\n\n"
        "[EVENT:warning:adguard] The first upstream answered slowly twice (412 ms and 407 ms)\n"
        "[MEMORY:baseline:postgres] Idle connections stay around 12",
        after=5.2,
    )
    r.bash(PS, containers(jellyfin="Up 3 minutes (healthy)"), "List the containers", after=2.2)
    r.answer(
        answer(
            "DNS was slow for a moment and is normal again; everything else is healthy.",
            found(adguard="healthy: 24 ms after two slow upstream answers"),
        ),
        after=4.4,
    )


def caddy_alone(r: Recorder) -> None:
    """What was known of caddy is no longer so."""
    r.say(
        "The tunnel was restarted for a new peer. caddy depends on it, as far as I was told, so I look there.",
        after=2.0,
    )
    r.bash(
        "systemctl show wg-quick@wg0 -p ActiveEnterTimestamp --value; docker inspect -f '{{.State.StartedAt}}' caddy",
        "Fri 2026-11-20 09:24:48 UTC\n2026-11-20T09:22:10.331508Z",
        "Which of them started first?",
    )
    r.say("caddy started two and a half minutes before the tunnel. Did it fail?", after=3.0)
    r.bash(
        "docker logs --since 10m caddy 2>&1 | tail -2; grep -n bind /srv/homelab/caddy/Caddyfile",
        '{"level":"info","msg":"serving initial configuration"}\n'
        '{"level":"info","msg":"server running","protocols":["h1","h2","h3"]}\n4:    default_bind 0.0.0.0',
        "caddy's start and its configuration",
        after=1.4,
    )
    r.bash(f"{HEALTH} https://media.home.lan/", "302 0.031s", "jellyfin through caddy", after=2.4)
    r.say(
        "It did not: since the last change of its configuration it listens on every address and no longer needs the "
        "tunnel's. What was known about the order is out of date.\n\n"
        "[MEMORY:dependency:caddy] Can be started independently of WireGuard\n\n"
        "[EVENT:info:wireguard] wg0 was restarted for a new peer; no service was interrupted",
        after=4.6,
    )
    r.bash(PS, containers(caddy="Up 4 minutes (healthy)", jellyfin="Up 4 minutes (healthy)"), "The others", after=1.8)
    r.answer(
        answer(
            "The tunnel was restarted and caddy did not mind: it no longer depends on WireGuard.",
            found(),
            memories={"caddy:dependency": "Can be started independently of WireGuard"},
        ),
        after=4.2,
    )


def jellyfin_hangs(r: Recorder) -> None:
    """An outage: tier 1 may not mend it, and hands it over."""
    r.say("Containers and health, as always.", after=1.2)
    r.bash(PS, containers(jellyfin="Up 5 minutes (unhealthy)"), "List the containers", after=0.9)
    r.say("jellyfin is unhealthy, and it was started five minutes ago: its minute is long over.", after=2.4)
    slow = "curl: (28) Operation timed out after 10001 milliseconds with 0 bytes received"
    r.bash(f"{HEALTH} http://127.0.0.1:8096/health", slow, "jellyfin's health", took=6.0, code=28)
    r.bash(f"{HEALTH} https://media.home.lan/", "502 0.004s", "jellyfin through caddy", after=1.6)
    r.bash(
        "docker logs --since 5m jellyfin 2>&1 | tail -3",
        "[09:27:41] [INF] Transcode: ffmpeg started for session 4c1f\n"
        "[09:28:02] [WRN] Kestrel: thread pool starvation, 64 requests queued\n"
        "[09:28:40] [WRN] Kestrel: thread pool starvation, 211 requests queued",
        "What jellyfin says",
        after=1.8,
    )
    r.say(
        "jellyfin accepts connections and answers none of them. Watching is all I may do, so this goes to tier 2.\n\n"
        "[EVENT:critical:jellyfin] Does not answer: three health checks in a row timed out, the web player shows 502",
        after=3.6,
    )
    r.answer(
        answer(
            "jellyfin hangs: connections are accepted and never answered. The other services are healthy.",
            found(jellyfin="unhealthy: health check times out after 10 s"),
            escalation={
                "reason": "jellyfin does not answer and does not recover by itself",
                "context": (
                    "Container up for 5 minutes and unhealthy, so it is not the usual minute after a start. caddy "
                    "returns 502 for it. Its log reports thread pool starvation since a transcode began. Disk, "
                    "postgres and the network are fine."
                ),
                "failed_checks": [
                    "jellyfin: GET /health timed out after 10 s (3 of 3)",
                    "media.home.lan through caddy: 502",
                ],
            },
        ),
        after=4.8,
    )


def api_down(r: Recorder) -> None:
    """A run that fails, through no fault of the house: the model's API gives up."""
    r.say("Containers first.", after=1.3)
    r.bash(PS, containers(jellyfin="Up 6 minutes (unhealthy)"), "List the containers", after=1.0)
    r.api_error(
        500,
        "API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment.",
    )


def after_the_repair(r: Recorder) -> None:
    """The second healthy check after a repair; confirms what was corrected, and learns by the structured answer."""
    r.say("jellyfin was repaired by a tier 3 session. I check it first, then the rest.", after=1.6)
    r.bash(PS, containers(jellyfin="Up About a minute (healthy)"), "List the containers", after=0.9)
    r.bash(
        f"for i in 1 2 3; do {HEALTH} http://127.0.0.1:8096/health; done",
        "200 0.016s\n200 0.014s\n200 0.015s",
        "jellyfin's health, three times",
        took=3.0,
        after=2.2,
    )
    r.bash(
        "docker logs --since 20m adguard 2>&1 | grep -i filter | tail -2",
        "[info] filtering: updating 14 lists\n[info] filtering: updated 14 lists in 19.6s",
        "What adguard did",
        after=2.4,
    )
    r.say(
        "All of it answers. caddy was restarted along with jellyfin while the tunnel was down for a moment, and came "
        "up at once:\n\n"
        "[MEMORY:dependency:caddy] Starts independently of WireGuard\n\n"
        "[EVENT:info:jellyfin] Healthy in three checks after the repair",
        after=4.4,
    )
    r.bash(WIREGUARD, WIREGUARD_UP, "Is the tunnel up?", after=1.6)
    r.answer(
        answer(
            "jellyfin is healthy after its repair, and so is everything else.",
            found(jellyfin="healthy: three checks below 20 ms"),
            memories={
                "adguard:maintenance": "Updating its 14 filter lists takes about 20 seconds, during which DNS is slow"
            },
        ),
        after=5.0,
    )


SCENES = tuple(
    Scene("homelab-watch", f"{number:02}-{play.__name__.replace('_', '-')}", HAIKU, play)
    for number, play in enumerate(
        (
            first_look,
            waits_for_jellyfin,
            all_quiet,
            foreign_markers,
            caddy_alone,
            jellyfin_hangs,
            api_down,
            after_the_repair,
        ),
        start=1,
    )
)
