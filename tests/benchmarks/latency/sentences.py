"""Generate operational sentences: what agents record about hosts, services, ports and times. Pure and seeded.

Sentence `number` is the same on every machine. Words repeat as they do in real text: a few very often (`after`,
`the`), services by Zipf's law, and names of units, hosts and volumes that hardly anything else holds.
"""

# ruff: noqa: E501 (a sentence is a line)

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

BASES = (
    *("jellyfin", "nextcloud", "traefik", "postgres", "redis", "grafana", "prometheus", "vaultwarden", "gitea"),
    *("homeassistant", "mosquitto", "pihole", "wireguard", "unifi", "nginx", "mariadb", "minio", "loki", "immich"),
    *("paperless", "sonarr", "frigate", "zigbee2mqtt", "keycloak", "rabbitmq", "elasticsearch", "syncthing", "samba"),
    *("plex", "matrix", "authelia", "influxdb", "telegraf", "restic", "borg", "haproxy", "coredns", "etcd", "vault"),
)
PLACES = ("", "-edge", "-lab", "-backup")
SERVICES = tuple(base + place for place in PLACES for base in BASES)
_BY_ZIPF = tuple(accumulate(1 / rank for rank in range(1, len(SERVICES) + 1)))
PROJECTS = tuple(f"project-{number:02}" for number in range(1, 13))
GLOBAL_SHARE, GENERAL_SHARE = 0.6, 0.04
CATEGORIES = ("timing", "dependency", "behavior", "remediation", "maintenance")

_SYLLABLES = ("ba", "do", "fu", "gi", "ka", "lo", "mu", "ne", "pi", "ra", "so", "tu", "va", "wo", "zi", "cha")
_HOSTS = ("nas", "edge", "pve", "node", "web", "db", "cam", "gw", "mon", "build")
_PARTS = (
    *("health check", "web interface", "media library", "login page", "message queue", "search index", "cache"),
    *("nightly job", "certificate", "volume", "database", "reverse proxy", "scheduler", "metrics endpoint", "tunnel"),
    *("log shipper", "webhook", "API", "image store", "backup job", "disk scan", "session store", "DNS resolver"),
)
_FAULTS = (
    *("no route to host", "connection refused", "permission denied", "disk quota exceeded", "bad gateway", "timed out"),
    *("too many open files", "out of memory", "certificate has expired", "stale file handle", "database is locked"),
)
_PATHS = ("/var/lib", "/srv", "/mnt/data", "/etc", "/opt", "/home/ops", "/var/log")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "the first of the month")

# (statement, a question that it answers). Both are filled with the same values.
TEMPLATES: dict[str, tuple[tuple[str, str], ...]] = {
    "timing": (
        ("The {unit} job takes {seconds} seconds to finish after a restart", "how long does {unit} need once restarted"),
        ("The {part} on {host} needs {seconds}s until it answers", "when does the {part} of {host} respond again"),
        ("A full scan of {path} takes about {minutes} minutes", "duration of scanning {path}"),
        ("Give the {part} {minutes} minutes to warm up before port {port} is checked", "how soon can port {port} be probed"),
        ("The import into {volume} runs for {minutes} minutes on a good day", "how long is {volume} being imported"),
        ("Version {version} starts in {seconds} seconds, the one before took twice as long", "startup time of {version}"),
        ("The timeout of the {part} towards {host} is {seconds} seconds", "after what time does the {part} give up on {host}"),
    ),
    "dependency": (
        ("Must be started after the {unit} container", "what has to run before it, {unit}?"),
        ("The {part} reads its settings from {path}/{volume} on {host}", "where are the {part} settings kept, {volume}"),
        ("It listens on {address}:{port} and nothing else may take that port", "who uses {address}:{port}"),
        ("Needs {lib} {version} or newer, older ones fail at start", "which {lib} release is required, {version}"),
        ("The {volume} share is mounted from {host} over NFS before anything else", "where does {volume} come from"),
        ("Without the {part} on {host} the {unit} worker does not come up", "why is {unit} down when {host} is gone"),
        ("Interface {iface} carries the traffic of the {unit} network", "which interface is {unit} on"),
    ),
    "behavior": (
        ("Sometimes the {unit} worker crashes on first start with {fault}", "{unit} dies right at the beginning"),
        ("When {host} reboots, the {part} reports {fault} for a while", "{part} says {fault}, {host} was restarted"),
        ("Logs of the {unit} job fill {path} within {days} days", "what makes {path} full, {unit}"),
        ("The {part} answers with {code} while the {volume} volume is being moved", "status {code} during the move of {volume}"),
        ("Since {version} the {part} no longer reloads its settings without a restart", "are changes picked up since {version}"),
        ("User {user} on {host} may read but not write {path}/{volume}", "rights of {user} on {volume}"),
        ("Memory of the {unit} process grows by {megabytes} MB a day until it is restarted", "does {unit} leak memory"),
    ),
    "remediation": (
        ("Restarting the {unit} container clears the stale lock file in {path}", "{unit} is locked, what helps"),
        ("If the {part} shows {fault}, bring {iface} down and up again on {host}", "{fault} on {host}, what to do with {iface}"),
        ("Delete {path}/{volume}.tmp when the {part} hangs", "the {part} hangs, {volume}"),
        ("Going back to {version} solved the crash of the {unit} worker", "how was the {unit} crash solved"),
        ("Raise the limit of open files to {port} for {user} on {host}", "too few file handles for {user} on {host}"),
        ("Run the repair of {volume} by hand, then start the {unit} job", "how is {volume} repaired"),
        ("A second restart of {unit} within {minutes} minutes makes it worse, wait instead", "may {unit} be restarted twice"),
    ),
    "maintenance": (
        ("The backup of the {volume} volume runs every night at {clock}", "when is {volume} saved"),
        ("On {day} the {unit} job vacuums its database and is slow until {clock}", "why is {unit} slow on {day}"),
        ("The certificate for {host} on port {port} is renewed on {day}", "renewal of the certificate, {host}:{port}"),
        ("Old images in {path}/{volume} are pruned after {days} days", "how long are the images in {volume} kept"),
        ("Update {lib} to {version} before the {part} is touched", "order of the update to {version}"),
        ("The disk of {host} is checked on {day} at {clock} by {user}", "who checks the disk of {host}"),
        ("Rotate the key of {user} for {unit} every {days} days", "how often does the key for {unit} change"),
    ),
}  # fmt: skip
_BEFORE = (
    "",
    "",
    "",
    "",
    "After the last upgrade: ",
    "As seen twice this week: ",
    "On {host}: ",
    "For now, ",
    "Note: ",
)
_AFTER = (
    *("", "", "", ", so wait before checking its health", ", and it has to be done by hand", " when the disk is nearly full"),
    *(", which is expected", " and then it works again", " unless the network is down", ", look at the log first"),
    *(" after each restart of the router", " as long as nobody is logged in", ", not before the backup is done"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sentence:
    """One observation with its scope, and a question that it answers; `template` is the index of its template."""

    number: int
    template: int
    category: str
    service: str | None
    project: str | None
    observation: str
    question: str
    names: tuple[str, ...]


_ALL = tuple((category, *pair) for category, pairs in TEMPLATES.items() for pair in pairs)


def sentence(number: int, *, variant: int = 0) -> Sentence:
    """Sentence `number`; another `variant` puts the same fact between other clauses."""
    chance = random.Random(number)
    template = chance.randrange(len(_ALL))
    category, statement, question = _ALL[template]
    service = chance.choices(SERVICES, cum_weights=_BY_ZIPF)[0]
    project = None if chance.random() < GLOBAL_SHARE else chance.choice(PROJECTS)
    values = _values(chance, number)
    general = chance.random() < GENERAL_SHARE
    around = random.Random(number * 31 + variant)
    text = around.choice(_BEFORE) + statement + around.choice(_AFTER)
    return Sentence(
        number,
        template,
        category,
        None if general else service,
        project,
        text.format(**values),
        question.format(**values),
        (values["unit"], values["volume"], values["host"]),
    )


def queries(count: int, among: int, seed: int) -> Iterator[tuple[str, str | None]]:
    """(query, project or None for all) for sentences below `among`, each query once.

    Half of them are questions, a quarter four words of the sentence, a quarter names alone.
    """
    chance = random.Random(seed)
    asked: set[str] = set()
    while len(asked) < count:
        one = sentence(chance.randrange(among))
        kind = chance.randrange(4)
        if kind < 2:
            query = one.question
        elif kind == 2:
            words = one.observation.split()
            query = " ".join(chance.sample(words, min(4, len(words))))
        else:
            query = " ".join(name for name in one.names if name in one.observation) or one.question
        if query in asked:  # among few sentences they run out
            query = f"{query} {word(chance.randrange(10**6))}"
        if query not in asked:
            asked.add(query)
            yield query, one.project if chance.random() < 0.5 else None


def word(number: int) -> str:
    """A different word for each number, like the names of containers."""
    found = []
    while True:
        number, place = divmod(number, len(_SYLLABLES))
        found.append(_SYLLABLES[place])
        if not number:
            return "".join(found).ljust(4, "k")


def _values(chance: random.Random, number: int) -> dict[str, str]:
    return {
        "unit": f"{word(number % 60_000)}-{chance.choice(('worker', 'sync', 'api', 'proxy'))}",
        "volume": word(chance.randrange(20_000)) + "_data",
        "host": f"{chance.choice(_HOSTS)}{chance.randrange(1, 60):02}",
        "part": chance.choice(_PARTS),
        "fault": chance.choice(_FAULTS),
        "path": f"{chance.choice(_PATHS)}/{chance.choice(BASES)}",
        "user": chance.choice(("ops", "backup", "media", "www-data", "deploy", "monitor")),
        "lib": chance.choice(("OpenSSL", "glibc", "Python", "Node", "ffmpeg", "libpq", "Docker")),
        "iface": f"{chance.choice(('wg', 'eth', 'br', 'veth', 'tun'))}{chance.randrange(8)}",
        "day": chance.choice(_DAYS),
        "seconds": str(chance.randrange(3, 300)),
        "minutes": str(chance.randrange(2, 90)),
        "days": str(chance.randrange(2, 120)),
        "megabytes": str(chance.randrange(20, 900)),
        "code": str(chance.choice((401, 403, 404, 409, 429, 500, 502, 503, 504))),
        "port": str(chance.randrange(1024, 65_536)),
        "address": f"10.{chance.randrange(4)}.{chance.randrange(256)}.{chance.randrange(1, 255)}",
        "version": f"{chance.randrange(1, 12)}.{chance.randrange(30)}.{chance.randrange(400)}",
        "clock": f"{chance.randrange(24):02}:{chance.choice(('00', '15', '30', '45'))}",
    }
