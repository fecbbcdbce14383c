"""nightly-review: tier 1, by cron. Reviews the night: backups, load, updates."""

from __future__ import annotations

from sessions_app.demo.recorder import Recorder
from sessions_app.demo.scenes.house import HAIKU, PS, Scene, answer, containers, found


def backups(r: Recorder) -> None:
    """Learns three things of the night, of which the gate holds back one."""
    r.say("The night's backups first.", after=1.6)
    r.bash(
        "journalctl -u pg-backup --since '-26h' --no-pager -o cat",
        "pg-backup: connecting to postgres://backup:not-a-real-one@postgres:5432/media\n"
        "pg-backup: dump started 02:30:01\npg-backup: dump finished 02:34:09, 1.7 GB\n"
        "pg-backup: copied to /srv/backup/pg/2026-11-20.dump",
        "The backup's log",
    )
    r.bash(
        "docker logs --since 26h postgres 2>&1 | grep -c autovacuum; journalctl -k --since '-26h' --no-pager | wc -l",
        "3\n0",
        "Autovacuum and kernel messages",
        after=2.6,
    )
    r.bash("uptime", " 09:02:11 up 41 days,  load average: 0.42, 0.51, 0.48", "Load now", after=2.0)
    r.say(
        "The dump went well. The load of the night has a harmless reason.\n\n"
        "[MEMORY:timing:postgres] The nightly dump takes 4 minutes from 02:30 UTC\n"
        "[MEMORY:behavior:postgres] Autovacuum raises the load every night around 02:45 UTC -- not an incident\n"
        "[MEMORY:maintenance:postgres] The dump connects with postgres://backup:not-a-real-one@postgres:5432/media",
        after=5.6,
    )
    r.bash(PS, containers(), "List the containers", after=1.8)
    r.answer(
        answer(
            "The night was quiet: the dump took four minutes and was copied, load came from autovacuum only.",
            found(),
            events=({"level": "info", "service": "postgres", "message": "Nightly dump finished, 1.7 GB in 4 minutes"},),
        ),
        after=5.2,
    )


def lost_in_logs(r: Recorder) -> None:
    """A run that reaches its highest number of turns before it comes to an end."""
    r.say("I go through last night's logs, service by service.", after=1.8)
    for service, lines, seconds in (("caddy", 18_211, 2.4), ("jellyfin", 4_903, 2.8), ("adguard", 96_440, 3.4)):
        r.bash(f"docker logs --since 26h {service} 2>&1 | wc -l", str(lines), f"Size of {service}'s log", after=seconds)
        r.bash(
            f"docker logs --since 26h {service} 2>&1 | grep -iE 'error|warn' | sort | uniq -c | sort -rn | head -3",
            f"     {lines // 900} [warning] slow response\n      2 [error] connection reset by peer",
            f"What {service} complained about",
            after=seconds,
        )
    r.say("adguard's log is large. I read it hour by hour.", after=2.2)
    r.bash("docker logs --since 26h --until 25h adguard 2>&1 | grep -c slow", "4", "The first hour", after=1.2)
    r.out_of_turns(8)


SCENES = (
    Scene("nightly-review", "01-backups", HAIKU, backups),
    Scene("nightly-review", "02-lost-in-logs", HAIKU, lost_in_logs),
)
