"""The command that the CLI runs when a session starts: the one hook that it does not post by itself. Pure.

The command is a shell script without Django: curl, else Python with a socket, else nothing. It never fails, ends within
`SECONDS`, and says nothing unless the door answered. The token comes from a variable or a file and is handed on through
a descriptor, so that no list of processes shows it.
"""

from __future__ import annotations

import re
import shlex
from urllib.parse import urlsplit

from claudeops.lib.hosts import is_loopback

BY_AGENT = "X-Claudeops-By-Agent"
"""The header of a session whose CLI another one has started: its own environment has CLAUDECODE=1."""
SECONDS = 2
"""After which the script ends, before the CLI stops waiting for it."""

_HEAD = re.compile(r"\A# X-Claudeops-Hooks: (\S+) (\S+) (\S.*)$", re.MULTILINE)

SCRIPT = """\
# X-Claudeops-Hooks: {name} {url} {token}
exec 2>/dev/null
{take_token}
[ "$token" ] || exit 0
by=
tr '\\0' '\\n' < "/proc/${{CLAUDE_PID:-$PPID}}/environ" | grep -q '^CLAUDECODE=1' && by='{by_agent}: 1'
if command -v curl >/dev/null; then
answer=$(curl -q -sf -m {seconds}{proxy} -H @/dev/fd/3 -H 'Content-Type: application/json' \\
--data-binary @- {quoted} 3<<END
Authorization: Bearer $token
$by
END
)
elif command -v python3 >/dev/null; then
answer=$(python3 -S -E -c '{client}' {target} 3<<END
Authorization: Bearer $token
$by
END
)
fi
case $answer in '{{'*) printf '%s\\n' "$answer";; esac
exit 0
"""

# HTTP/1.0, so that the answer comes in one piece and ends with the connection. Between single quotes in the script.
CLIENT = """
import signal, socket, sys
signal.alarm({seconds})
scheme, host, port, path = sys.argv[1:]
body = sys.stdin.buffer.read()
door = socket.create_connection((host, int(port)))
if scheme == "https":
    import ssl
    door = ssl.create_default_context().wrap_socket(door, server_hostname=host)
head = ["POST %s HTTP/1.0" % path, "Host: %s:%s" % (host, port), "Content-Type: application/json"]
head += ["Content-Length: %d" % len(body), *filter(None, open(3).read().split("\\n")), "", ""]
door.sendall("\\r\\n".join(head).encode() + body)
head, _, answer = door.makefile("rb").read().partition(b"\\r\\n\\r\\n")
if head.split()[1:2] == [b"200"]:
    sys.stdout.buffer.write(answer)
"""


def command(name: str, *, url: str, token: str) -> str:
    """Return the script of the hook set `name`. `token` is `$NAME` of a variable, or the path of the token's file."""
    parts = urlsplit(url)
    port = str(parts.port or (443 if parts.scheme == "https" else 80))
    target = (parts.scheme, parts.hostname or "", port, parts.path or "/")
    return SCRIPT.format(
        name=name,
        url=url,
        token=token,
        take_token=f'token="${{{token[1:]}-}}"' if token.startswith("$") else f"read -r token < {shlex.quote(token)}",
        seconds=SECONDS,
        proxy=" --noproxy '*'" if is_loopback(parts.hostname or "") else "",
        quoted=shlex.quote(url),
        client=CLIENT.format(seconds=SECONDS),
        by_agent=BY_AGENT,
        target=shlex.join(target),
    )


def read(script: str) -> tuple[str, str, str] | None:
    """Return (name, url, token) of a script that `command` made; None for anything else."""
    match = _HEAD.match(script)
    return None if match is None else (match[1], match[2], match[3])
