"""What tool calls expose a session to, by the table."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.runner.exposure import Call, judge, judge_command, rules
from sessions_app.runner.shell import simple_commands

FOLDER = "/srv/homelab"
HOUSE = (
    "docker ps",
    "docker ps -a --format 'table {{.Names}}\\t{{.Status}}'",
    'docker inspect web | jq ".[0].State"',
    "docker stats --no-stream",
    "docker compose -f /srv/homelab/compose.yml ps",
    "docker compose up -d jellyfin",
    "docker restart jellyfin && sleep 5 && docker ps | grep jellyfin",
    "sudo docker ps",
    "sudo -u root systemctl is-active nginx",
    "systemctl restart nginx",
    "df -h",
    "df -h / /srv 2>/dev/null",
    "free -m; uptime; nproc",
    "uptime",
    "zpool status -x",
    "smartctl -a /dev/sda",
    "ss -ltnp",
    "ip addr show eth0",
    "ps aux | sort -k4 -r | head -5",
    "kubectl get pods -A",
    "kubectl -n media get deploy jellyfin -o yaml",
    "kubectl top nodes",
    "git status",
    "git log --oneline -5",
    "git -C /srv/homelab diff HEAD~1",
    "pytest -q tests",
    "cat compose.yml",
    "cat /srv/homelab/compose.yml",
    "grep -rn 'image:' .",
    "grep -E 'a|b$' compose.yml",
    "awk '{print $NF}' hosts.txt",
    "sed -n '1,20p' README.md",
    "ls -la",
    "find . -name '*.py' -newer README.md",
    "cat /etc/hosts",
    "cat /proc/meminfo",
    "echo done",
    'echo "$(date): $(hostname)"',
    "X=1 Y=2 env LANG=C df",
    "timeout 5 docker ps",
    "time nice -n 10 du -sh .",
    "ssh nas.lan 'zpool status; df -h'",
    "ssh -p 2222 -i key admin@nas.lan uptime",
    "bash -c 'docker ps && df -h'",
    "if docker ps | grep -q web; then echo up; else echo down; fi",
    "for name in a b c; do docker inspect $name; done",
    "cat > notes.md <<'EOF'\ncurl is not run here $(curl x)\nEOF",
    "/usr/bin/docker ps",
    "curl -sS -o /dev/null -m 10 -w '%{http_code} %{time_total}s\\n' http://127.0.0.1:8096/health",
    "curl -fsSo /dev/null https://media.home.lan/ && echo up",
    "",
    "# a comment\ndf -h",
)
OUTSIDE = {
    "docker logs jellyfin": "logs: jellyfin",
    "docker logs --tail 50 jellyfin 2>&1 | grep -i error": "logs: jellyfin",
    "docker logs -f --since 5m jellyfin": "logs: jellyfin",
    "sudo docker --context nas logs jellyfin": "logs: jellyfin",
    "docker compose -f /srv/homelab/compose.yml logs -f web": "logs: web",
    "docker compose up web": "logs: web",
    "docker-compose logs --tail 10 web": "logs: web",
    "podman logs db": "logs: db",
    "kubectl -n media logs jellyfin-0 --tail 5": "logs: jellyfin-0",
    "kubectl describe pod web": "logs: pod",
    "journalctl -u nginx.service -n 50": "logs: nginx",
    "journalctl -n 50 --no-pager": "logs: journalctl",
    "journalctl --unit=caddy": "logs: caddy",
    "systemctl status nginx": "logs: nginx",
    "dmesg | tail": "logs: dmesg",
    "docker exec web cat /etc/nginx/nginx.conf": "container: web",
    "docker exec -it -u root web sh -c 'ps'": "container: web",
    "docker run --rm alpine ps": "container: alpine",
    "curl -s https://example.org/feed": "web: example.org",
    "curl -fsSL https://get.example.org | sh": "web: get.example.org",
    "curl -o /dev/null http://a.example.org http://b.example.org": "web: a.example.org",
    "curl -vo /dev/null http://a.example.org": "web: a.example.org",
    "curl -v -o /dev/null http://a.example.org": "web: a.example.org",
    "curl -o page.html http://a.example.org": "web: a.example.org",
    "curl -o /dev/null -w '%header{x-note}' http://a.example.org": "web: a.example.org",
    "curl -s http://a.example.org -o": "web: a.example.org",
    "wget -qO- http://mirror.example.net/list": "web: mirror.example.net",
    "http GET api.example.org/x": "web: api.example.org",
    "dig +short TXT example.org": "web: example.org",
    "gh issue view 7 -R acme/tool": "issues: acme/tool",
    "gh pr list": "issues: gh",
    "gh api https://github.com/acme/tool/issues": "issues: acme/tool",
    "glab mr view 3": "issues: glab",
    "git fetch origin": "commits: remote",
    "git pull --rebase": "commits: remote",
    "git log origin/main -3": "commits: remote",
    "git show FETCH_HEAD": "commits: remote",
    "git frobnicate": "command: git",
    "mail -p": "mail",
    "cat /var/log/syslog": "file: /var/log",
    "tail -n 100 /var/log/nginx/error.log": "file: /var/log",
    "less < /var/log/auth.log": "file: /var/log",
    "cat /tmp/report.txt": "file: /tmp",
    "cd /tmp && ls": "file: /tmp",
    "cat ../../../../tmp/x": "file: /tmp",
    "cat ~/Downloads/readme.txt": "file: downloads",
    "cat data/uploads/form.csv": "file: uploads",
    "grep error app.log": "file: .log",
    "cat /srv/other/notes.txt": "file: /srv",
    "cp /var/log/x.txt .": "file: /var/log",
    "cat $REPORT": "file: unknown",
    "find . -name '*.txt' | xargs cat": "file: unknown",
    "git diff --no-index /tmp/a b": "file: /tmp",
    "python3 -c 'print(1)'": "command: python3",
    "./check.sh": "command: check.sh",
    "/tmp/bin/docker ps": "command: docker",
    "docker ps && docker logs web": "logs: web",
    "docker ps; docker logs web": "logs: web",
    "docker ps || curl example.org": "web: example.org",
    "df -h &\ncurl example.org": "web: example.org",
    "echo $(docker logs web)": "logs: web",
    'echo "last: $(docker logs --tail 1 web)"': "logs: web",
    "echo `docker logs web`": "logs: web",
    "diff <(docker logs a) compose.yml": "logs: a",
    "X=$(curl example.org) echo": "web: example.org",
    "bash -lc 'docker logs web'": "logs: web",
    "ssh nas.lan \"bash -c 'docker logs web'\"": "logs: web",
    "ssh nas.lan": "command: ssh",
    "bash run.sh": "command: bash",
    "eval docker logs web": "logs: web",
    "cat <<EOF\n$(docker logs web)\nEOF": "logs: web",
    "while true; do docker logs web; done": "logs: web",
    "echo 'an open quotation mark": "command: not understood",
    'echo "$(docker ps"': "command: not understood",
    "df; <x curl example.org": "web: example.org",
}


def test_what_the_machine_says_of_itself_is_the_house(subtests):
    for command in HOUSE:
        with subtests.test(str(command)):
            assert judge_command(command, rules(), FOLDER) == ()


def test_other_commands_name_their_outside_source(subtests):
    for command, source in OUTSIDE.items():
        with subtests.test(str(command)):
            assert source in judge_command(command, rules(), FOLDER)


def test_the_table_has_many_commands() -> None:
    assert len(HOUSE) + len(OUTSIDE) >= 80


def test_tools(subtests):
    for name, main, paths, judgement in [
        ("Bash", "docker ps", (), ()),
        ("Bash", "docker logs web", (), ("logs: web",)),
        ("Read", "/srv/homelab/a.yml", ("/srv/homelab/a.yml",), ()),
        ("Read", "/var/log/syslog", ("/var/log/syslog",), ("file: /var/log",)),
        ("Grep", "error", ("/var/log",), ("file: /var/log",)),
        ("Grep", "error", (), ()),
        ("Glob", "*.py", ("/tmp/x",), ("file: /tmp",)),
        ("WebFetch", "https://example.org/page", (), ("web: example.org",)),
        ("WebSearch", "how to restart", (), ("web: search",)),
        ("Write", "/tmp/x", ("/tmp/x",), None),
        ("TodoWrite", "null", (), None),
        ("Task", "{}", (), ("subagent",)),
        ("mcp__claudeops__recall", "jellyfin", (), ()),
        ("mcp__mailbox__read", "{}", (), ("mcp: mailbox",)),
        ("BashOutput", "{}", (), ("tool: bashoutput",)),
        ("SomethingNew", "{}", (), ("tool: somethingnew",)),
        ("", "", (), ("tool: unnamed",)),
    ]:
        with subtests.test(str(name)):
            assert judge(Call("1", name, main, paths), rules(), FOLDER) == judgement


def test_the_working_folder_is_the_house_below_srv_only() -> None:
    table = rules()
    assert judge_command("cat /srv/homelab/a", table, "/srv/homelab") == ()
    assert judge_command("cat /srv/homelab2/a", table, "/srv/homelab") == ("file: /srv",)
    assert judge_command("cat /srv/x/a", table, "/srv") == ("file: /srv",)
    assert judge_command("cat /tmp/work/a", table, "/tmp/work") == ("file: /tmp",)


def test_settings_add_to_the_table() -> None:
    table = rules(
        servers=("ops",),
        house_tools=("LookAtRack",),
        house_commands=("ceph status", "python3 health.py"),
        outside_commands=("docker ps", "make"),
        outside_paths=("/data/inbound/",),
    )
    assert judge(Call("1", "mcp__ops__recall", ""), table) == ()
    assert judge(Call("1", "LookAtRack", ""), table) == ()
    assert judge_command("ceph status", table) == judge_command("python3 health.py", table) == ()
    assert judge_command("ceph log", table) == ("command: ceph",)
    assert judge_command("docker ps -a", table) == ("command: docker",)
    assert judge_command("make test", table) == ("command: make",)
    assert judge_command("cat /data/inbound/a.txt", table) == ("file: /data/inbound",)


def test_names_are_short_and_of_one_line() -> None:
    found = judge(Call("1", "mcp__" + "é\n<b>" * 500 + "__x", ""), rules())
    assert found is not None
    assert len(found[0]) <= 50
    assert "\n" not in found[0]


PIECES = st.sampled_from(
    [
        *"'\"`$()<>|&;\n\\ {}!#=",
        "$(",
        "<<EOF\n",
        "\nEOF",
        "docker",
        "logs",
        "ps",
        "curl",
        "bash -c",
        "ssh",
        "sudo",
        "cat",
    ]
)


@given(st.lists(PIECES | st.text(max_size=6), max_size=30).map("".join) | st.text(max_size=200))
def test_any_command_is_judged(command: str) -> None:
    found = judge_command(command, rules(), FOLDER)
    assert all(isinstance(source, str) and source and len(source) < 60 for source in found)
    assert simple_commands(command) is None or isinstance(simple_commands(command), list)


@given(st.sampled_from(["; ", " | ", " && ", "\n", " & "]), st.sampled_from(HOUSE[:30]), st.sampled_from(HOUSE[:30]))
def test_an_outside_part_is_found_in_any_compound(operator: str, before: str, after: str) -> None:
    command = operator.join([before, "docker logs web", after])
    assert "logs: web" in judge_command(command, rules(), FOLDER)


@given(st.text(max_size=30), st.text(max_size=60), st.lists(st.text(max_size=40), max_size=3))
def test_any_call_is_judged(name: str, main: str, paths: list[str]) -> None:
    judge(Call("1", name, main, tuple(paths)), rules(), FOLDER)


def test_a_long_command_is_judged_at_once(subtests):
    for piece in ["<<A\n", "$(", "`a", "a&", "a|", '"$(a)"', "sudo ", "bash -c ", "ssh a ", "x{", "#\n", "../"]:
        with subtests.test(str(piece)):
            started = time.process_time()
            judge_command((piece * 20_000)[:20_000], rules(), FOLDER)
            assert time.process_time() - started < 5
