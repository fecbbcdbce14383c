from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.observe.changes import can_change

READS = [
    "docker ps --format '{{.Names}}' | grep -E 'PID|ffmpeg'",
    "curl -sS -o /dev/null -m 10 -w '%{http_code} %{time_total}s\\n' http://127.0.0.1:8096/health",
    "curl -s localhost/health; docker exec jellyfin ls /cache | cut -d- -f1 | sort -u | wc -l",
    "until curl -fsS -m 2 http://x/health; do read -rt 5 < /dev/zero; done; docker logs --since 2m x 2>&1 | tail -3",
    "for port in 8096 3000; do curl -sS http://127.0.0.1:$port/; done",
    "sudo journalctl -u pg-backup --since '-26h' --no-pager -o cat | tail -1",
    "timeout 10 ping -c 1 nas",
    "kubectl exec -it vault-0 cat /etc/hosts",
    "LANG=C df -h 2>/dev/null",
    "cd /srv && git log --oneline -3 -- payments && git diff HEAD~1 > /dev/null",
    "if [ -f /srv/x ]; then cat /srv/x; fi",
    'grep -rn "a > b; rm" src',
    "sed -n 10,20p file",
    "docker exec postgres pg_isready",
    "",
]
CHANGES = [
    "docker restart jellyfin",
    "docker exec jellyfin kill -QUIT 1",
    "cat a > b",
    "echo x 2>> log",
    "ls; rm -r old",
    "ls & rm -r old",
    "echo $(reboot)",
    'echo "$(reboot)"',
    "echo `reboot`",
    "find . -name x -delete",
    "curl -X POST http://127.0.0.1/restart",
    "curl -sd '{}' http://127.0.0.1/restart",
    "awk '{print > \"out\"}' file",
    "sed -i s/a/b/ file",
    "python manage.py migrate",
    "git commit -m x",
    "sh -c 'rm x'",
    "ls\nrm x",
    "kubectl rollout restart deploy/billing",
    "cat <<EOF | tee x\nhello\nEOF",
    "ls " + "a" * 3_000,
]


def test_a_command_that_only_reads_changes_nothing(subtests):
    for command in READS:
        with subtests.test(str(command)):
            assert not can_change("Bash", command)


def test_any_other_command_can_change_something(subtests):
    for command in CHANGES:
        with subtests.test(str(command)):
            assert can_change("Bash", command)


@pytest.mark.parametrize("tool", ["Read", "Grep", "WebFetch", "mcp__claudeops__recall", "mcp__ops__list_hosts"])
def test_a_tool_that_only_reads_changes_nothing(tool):
    assert not can_change(tool, "x")


@pytest.mark.parametrize("tool", ["Edit", "Write", "Agent", "", "Reader", "mcp__tickets__create", "mcp__x__getaway"])
def test_any_other_tool_can_change_something(tool):
    assert can_change(tool, "x")


@given(st.text(max_size=300))
def test_every_text_is_judged(text):
    assert can_change("Bash", text) in (True, False)


def test_no_command_takes_long(subtests):
    for piece in ["sudo ", "'", '"', "\\", "a=b ", "docker exec -x ", "curl ", "awk ", ";", "$", "( "]:
        with subtests.test(str(piece)):
            started = time.process_time()
            can_change("Bash", piece * (2_000 // len(piece)))
            assert time.process_time() - started < 10
