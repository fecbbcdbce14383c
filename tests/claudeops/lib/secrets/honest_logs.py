"""Lines of honest logs in realistic formats, with random ids of the true alphabets. None holds a secret."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.claudeops.lib.secrets.values import ALNUM, BASE64, DIGITS, HEX, LOWER, UPPER, URL, Maker

SERVICES = [
    "grafana",
    "prometheus",
    "nginx",
    "postgres",
    "redis",
    "home-assistant",
    "traefik",
    "loki",
    "minio",
    "vaultwarden",
    "authelia",
    "keycloak",
]
USERS = ["ops", "root", "backup", "git", "anna", "www-data"]
FILES = Path(__file__).parents[4] / "data" / "streams"


def honest_lines(count: int, seed: int = 7) -> Iterator[str]:
    """So many lines, each format as often as the next."""
    maker = Maker(seed)
    made = 0
    while made < count:
        for form in FORMS:
            if made == count:
                return
            yield form(maker)
            made += 1


def _service(m: Maker) -> str:
    return m.random.choice(SERVICES)


def _at(m: Maker) -> str:
    r = m.random
    return f"2026-{r.randint(1, 12):02}-{r.randint(1, 28):02}T{r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.randint(0, 59):02}.{r.randint(0, 999999):06}Z"


def _stamp(m: Maker) -> str:
    r = m.random
    return f"Nov {r.randint(1, 30):2} {r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.randint(0, 59):02}"


def _ip(m: Maker) -> str:
    return ".".join(str(m.random.randint(1, 254)) for _ in range(4))


def _mac(m: Maker) -> str:
    return ":".join(m.of(HEX, 2) for _ in range(6))


def _n(m: Maker, most: int = 100_000) -> int:
    return m.random.randint(1, most)


def _hex(m: Maker, length: int) -> str:
    return m.of(HEX, length)


def _journal(m: Maker, words: str) -> str:
    return f"{_stamp(m)} node{_n(m, 9)} {words}"


def _pod(m: Maker) -> str:
    return f"{_service(m)}-{m.of('bcdfghjklmnpqrstvwxz2456789', 10)}-{m.of('bcdfghjklmnpqrstvwxz2456789', 5)}"


def _stream(m: Maker) -> str:
    kind = m.random.choice(["assistant", "user", "system", "result"])
    usage = {
        "input_tokens": _n(m),
        "cache_creation_input_tokens": _n(m),
        "cache_read_input_tokens": _n(m),
        "output_tokens": _n(m, 900),
    }
    if kind == "assistant":
        message = {
            "id": "msg_01" + m.of(ALNUM, 22),
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5-20250929",
            "content": [
                {
                    "type": "tool_use",
                    "id": "toolu_01" + m.of(ALNUM, 22),
                    "name": "Bash",
                    "input": {"command": f"docker logs --tail 50 {_service(m)}"},
                }
            ],
            "usage": usage,
        }
        return json.dumps({"type": kind, "message": message, "session_id": m.uuid(), "uuid": m.uuid()})
    if kind == "user":
        content = [
            {
                "tool_use_id": "toolu_01" + m.of(ALNUM, 22),
                "type": "tool_result",
                "content": f"{_hex(m, 12)}   {_service(m)}:latest   Up {_n(m, 50)} hours (healthy)\nsha256:{_hex(m, 64)}",
            }
        ]
        return json.dumps({"type": kind, "message": {"role": "user", "content": content}, "session_id": m.uuid()})
    if kind == "system":
        return json.dumps(
            {
                "type": kind,
                "subtype": "init",
                "cwd": "/srv/ops",
                "session_id": m.uuid(),
                "tools": ["Bash", "Read"],
                "apiKeySource": "none",
                "claude_code_version": "2.0.14",
                "uuid": m.uuid(),
            }
        )
    return json.dumps(
        {
            "type": kind,
            "subtype": "success",
            "duration_ms": _n(m),
            "num_turns": _n(m, 30),
            "total_cost_usd": 0.0123,
            "usage": usage,
            "session_id": m.uuid(),
            "uuid": m.uuid(),
        }
    )


def _certificate(m: Maker) -> str:
    return "\n".join(
        [
            "-----BEGIN CERTIFICATE-----",
            "MII" + m.of(BASE64, 61),
            *(m.of(BASE64, 64) for _ in range(4)),
            m.of(BASE64, 30) + "==",
            "-----END CERTIFICATE-----",
        ]
    )


def _prose(m: Maker) -> str:
    return m.random.choice(PROSE).replace("#", _service(m)).replace("%", str(_n(m, 90)))


PROSE = [
    "The password of # expires in % days.",
    "Password authentication is disabled for # on all nodes.",
    "The token: expires daily, # asks for a new one.",
    "# rotates its API key every % days; the key is kept in the vault.",
    "password must be at least 12 characters long",
    "Password changed for user #.",
    "The secret is mounted at /run/secrets/#_password.",
    "#: set POSTGRES_PASSWORD_FILE=/run/secrets/db and restart",
    "Use ${GRAFANA_PASSWORD} instead of a literal password in #.",
    "Das Passwort von # ist abgelaufen und muss geändert werden.",
    "El token de # caduca cada % días.",
    "Le mot de passe de # est expiré depuis % jours.",
    "Invalid password for #: too short (minimum is 8 characters)",
    "token limit of # raised to 4096 tokens",
    "The session used 18234 input tokens and 923 output tokens, cost $0.34.",
    "# needs % s to start; restart postgres first",
    "key: value pairs in # are sorted, the primary key is user_id_%",
    "API key is missing for #, returns 401 Unauthorized",
    "the passphrase prompt of # blocks the boot for % seconds",
    "Secret/#-tls is of type kubernetes.io/tls with 2 keys",
    'TLS secret "#-tls" not found in namespace monitoring',
    "Pin the image of # to version 11.%.0; pin 17 of the header drives the relay",
    "ssh-ed25519 host key of # changed after reinstall",
    "The login of # is slow: % ms at the 95th percentile.",
    "pass: %, fail: 0, skipped: 2",
    "passed=% failed=0 token_count=%000",
    "credentials of # are stored in 1Password",
    "The auth service # answers 503 when redis2 is down.",
    "# uses OAuth2 with PKCE, HS256 tokens and a scope of openid.",
    "Unexpected token < in JSON at position % while reading #",
    "bash: syntax error near unexpected token `done'",
    "Memory: # is restarted by cron at 03:%; the lock file is /var/lock/#.lock",
    "The seed nodes of # are node1:9042, node2:9042 and node3:9042",
    "cookie banner of # shown again after update 2.%.1",
]

FORMS: list[Callable[[Maker], str]] = [
    lambda m: _journal(m, f"systemd[1]: Started {_service(m)}.service - Container {_hex(m, 12)}."),
    lambda m: _journal(m, f"sshd[{_n(m)}]: Failed password for invalid user {m.random.choice(USERS)} from {_ip(m)} port {_n(m, 65000)} ssh2"),
    lambda m: _journal(m, f"sshd[{_n(m)}]: Accepted publickey for ops from {_ip(m)} port {_n(m, 65000)} ssh2: ED25519 SHA256:{m.of(BASE64, 43)}"),
    lambda m: _journal(m, f"kernel: [{_n(m)}.{_n(m)}] pci 0000:{_hex(m, 2)}:00.0: [8086:{_hex(m, 4)}] type 00 class 0x{_hex(m, 6)}"),
    lambda m: _journal(m, f"dockerd[{_n(m)}]: time=\"{_at(m)}\" level=info msg=\"ignoring event\" container={_hex(m, 64)} module=libcontainerd"),
    lambda m: _journal(m, f"kubelet[{_n(m)}]: E1123 pod_workers.go:1301] \"Error syncing pod\" pod=\"monitoring/{_pod(m)}\" podUID=\"{m.uuid()}\""),
    lambda m: _journal(m, f"sudo[{_n(m)}]: pam_unix(sudo:auth): authentication failure; logname=ops uid=1000 euid=0 tty=/dev/pts/1 ruser=ops rhost=  user=ops"),
    lambda m: _journal(m, f"CRON[{_n(m)}]: (root) CMD (/usr/local/bin/backup.sh --repo /mnt/backup/{_service(m)} >/dev/null 2>&1)"),
    lambda m: f"{_hex(m, 12)}   {_service(m)}/{_service(m)}:11.{_n(m, 9)}.{_n(m, 9)}   \"/docker-entrypoint.…\"   {_n(m, 9)} hours ago   Up {_n(m, 9)} hours (healthy)   0.0.0.0:{_n(m, 65000)}->3000/tcp   {_service(m)}-1",
    lambda m: f'    "Id": "{_hex(m, 64)}", "Created": "{_at(m)}", "Image": "sha256:{_hex(m, 64)}", "HostsPath": "/var/lib/docker/containers/{_hex(m, 64)}/hosts",',
    lambda m: f'"LowerDir": "/var/lib/docker/overlay2/{_hex(m, 64)}-init/diff:/var/lib/docker/overlay2/l/{m.of(UPPER, 26)}"',
    lambda m: f"{_pod(m)}   1/1   Running   {_n(m, 9)} ({_n(m, 9)}h ago)   {_n(m, 99)}d   10.42.0.{_n(m, 254)}   node{_n(m, 9)}   <none>",
    lambda m: f"  Normal  Pulled  {_n(m, 59)}s  kubelet  Container image \"ghcr.io/{_service(m)}/{_service(m)}@sha256:{_hex(m, 64)}\" already present on machine",
    lambda m: f"default-token-{m.of('bcdfghjklmnpqrstvwxz2456789', 5)}   kubernetes.io/service-account-token   3   {_n(m, 400)}d",
    lambda m: f'{_ip(m)} - - [23/Nov/2026:08:46:11 +0000] "GET /static/js/main.{_hex(m, 8)}.chunk.js?v=11.{_n(m, 9)} HTTP/2.0" 200 {_n(m)} "https://{_service(m)}.lan/d/{m.of(ALNUM, 9)}/node?orgId=1&from=now-6h" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"',
    lambda m: f'{_ip(m)} - anna [23/Nov/2026:08:46:11 +0000] "POST /api/ds/query?ds_type=prometheus&requestId=Q{_n(m)} HTTP/1.1" 200 {_n(m)} rid={m.uuid()} etag="{_hex(m, 8)}-{_hex(m, 4)}"',
    lambda m: f'{_ip(m)} - - [23/Nov/2026] "GET /.well-known/acme-challenge/{m.of(URL, 43)} HTTP/1.1" 200 87',
    lambda m: f'{_ip(m)} - - "GET /assets/index-{m.of(URL, 8)}.js HTTP/2.0" 304 0 "-" "-" upstream={_ip(m)}:8080 rt=0.0{_n(m, 99)}',
    lambda m: f"commit {_hex(m, 40)}\nAuthor: Anna <anna@{_service(m)}.lan>\nDate:   Mon Nov 23 08:46:11 2026 +0100\n\n    Rotate the token of {_service(m)}",
    lambda m: f"{_hex(m, 7)} (HEAD -> main, origin/main) Fix password reset of {_service(m)} (#{_n(m, 999)})",
    lambda m: f"   {_hex(m, 9)}..{_hex(m, 9)}  main -> main",
    lambda m: f'      "integrity": "sha512-{m.of(BASE64, 86)}==",',
    lambda m: f'      "resolved": "https://registry.npmjs.org/js-tokens/-/js-tokens-{_n(m, 9)}.0.0.tgz#{_hex(m, 40)}",',
    lambda m: f"Downloading {_service(m)}_client-{_n(m, 9)}.{_n(m, 9)}.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl ({_n(m, 90)}.3 MB)",
    lambda m: f"    --hash=sha256:{_hex(m, 64)} \\",
    lambda m: f"github.com/golang-jwt/jwt/v5 v5.{_n(m, 9)}.0 h1:{m.of(BASE64, 43)}=",
    lambda m: f"[{_n(m)}.{m.of(DIGITS, 6)}] usb 1-{_n(m, 9)}: New USB device found, idVendor=1d6b, idProduct={_hex(m, 4)}, bcdDevice= 6.0{_n(m, 9)} SerialNumber: {m.of(UPPER, 16)}",
    lambda m: f"[{_n(m)}.{m.of(DIGITS, 6)}] EXT4-fs (sda{_n(m, 9)}): mounted filesystem {m.uuid()} r/w with ordered data mode. Quota mode: none.",
    lambda m: f"     Loaded: loaded (/lib/systemd/system/{_service(m)}.service; enabled; preset: enabled)\n   Main PID: {_n(m)} ({_service(m)})\n     CGroup: /system.slice/docker-{_hex(m, 64)}.scope",
    lambda m: f"Get:{_n(m, 99)} http://deb.debian.org/debian bookworm/main amd64 libpam-modules amd64 1.5.2-6+deb12u{_n(m, 9)} [{_n(m, 999)} kB]",
    lambda m: f"Setting up passwd (1:4.13+dfsg1-1+deb12u{_n(m, 9)}) ...",
    lambda m: f"  ata-WDC_WD80EFZX-68UW8N0_{m.of(UPPER, 8)}  ONLINE       0     0     0  (guid {m.of(DIGITS, 20)})",
    lambda m: f"scan: scrub repaired 0B in 0{_n(m, 9)}:12:4{_n(m, 9)} with 0 errors on Sun Nov 22 00:{_n(m, 59):02}:21 2026",
    lambda m: f"Serial Number:    {m.of(UPPER, 12)}\nLU WWN Device Id: 5 0014ee {_hex(m, 9)}\nFirmware Version: {m.of(UPPER, 8)}",
    lambda m: f"  5 Reallocated_Sector_Ct   0x0033   200   200   140    Pre-fail  Always       -       {_n(m, 9)}",
    lambda m: f'  # aws_instance.{_service(m)} will be updated in-place (id = "i-{_hex(m, 17)}", ami = "ami-{_hex(m, 17)}", subnet_id = "subnet-{_hex(m, 17)}")',
    lambda m: '      ~ password = (sensitive value)\n      + token    = (known after apply)\n        secret_arn = "arn:aws:secretsmanager:eu-central-1:' + m.of(DIGITS, 12) + f':secret:{_service(m)}-{m.of(ALNUM, 6)}"',
    lambda m: f'      - api_key = var.{_service(m)}_api_key -> null',
    lambda m: f"{_at(m)} [{_n(m)}] {m.random.choice(USERS)}@{_service(m)} LOG:  duration: {_n(m)}.{_n(m, 999)} ms  statement: SELECT id, password_hash FROM users WHERE token_id = {_n(m)}",
    lambda m: f"{_at(m)} FATAL:  password authentication failed for user \"{m.random.choice(USERS)}\"",
    lambda m: f"{_at(m)} LOG:  checkpoint complete: wrote {_n(m)} buffers (0.{_n(m, 99)}%); lsn={m.of('0123456789ABCDEF', 2)}/{m.of('0123456789ABCDEF', 8)}",
    lambda m: f'http_request_duration_seconds_bucket{{handler="/api/token",instance="{_ip(m)}:9100",job="{_service(m)}",le="0.{_n(m, 99)}"}} {_n(m)}',
    lambda m: f'kube_pod_container_info{{container_id="containerd://{_hex(m, 64)}",pod="{_pod(m)}",uid="{m.uuid()}"}} 1',
    lambda m: f'kube_secret_info{{namespace="monitoring",secret="{_service(m)}-tls"}} 1',
    lambda m: f'  File "/usr/lib/python3.11/site-packages/{_service(m)}/auth/token.py", line {_n(m, 900)}, in get_token\n    return self.session.token(key=self.api_key, password=password)\nValueError: invalid token: None',
    lambda m: f'    password = os.environ["{_service(m).upper().replace("-", "_")}_PASSWORD"]  # line {_n(m, 90)}',
    lambda m: f"    token = request.headers.get(\"Authorization\", \"\").removeprefix(\"Bearer \")  # {_n(m)}",
    lambda m: f"goroutine {_n(m, 900)} [running]:\nmain.(*Server).ServeHTTP(0xc000{_hex(m, 6)}, {{0x{_hex(m, 6)}, 0xc000{_hex(m, 6)}}})",
    lambda m: f'<img src="data:image/png;base64,iVBORw0KGgo{m.of(BASE64, 800)}==" alt="{_service(m)}">',
    lambda m: f"{_hex(m, 32)}  /srv/backup/{_service(m)}-2026-11-{_n(m, 28):02}.tar.gz",
    lambda m: f"{_hex(m, 64)} *{_service(m)}_{_n(m, 9)}.iso",
    lambda m: f"-rw-r----- 1 root ssl-cert {_n(m)} Nov 23 08:46 {_service(m)}.key -> ../../archive/{_service(m)}/privkey{_n(m, 20)}.pem",
    lambda m: f"{_n(m)} drwxr-xr-x {_n(m, 30)} {_n(m, 2000)} {_n(m, 2000)} 4096 Nov 23 08:46 {m.uuid()}",
    lambda m: f"{m.uuid()} {m.uuid()} {m.uuid()}",
    lambda m: f"{_ip(m)}  0x1  0x2  {_mac(m)}  *  br-{_hex(m, 12)}",
    lambda m: f"veth{_hex(m, 7)}@if{_n(m, 99)}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 link/ether {_mac(m)} link-netns {m.uuid()}",
    lambda m: f"peer: {m.of(BASE64, 43)}=\n  endpoint: {_ip(m)}:51820\n  allowed ips: 10.8.0.{_n(m, 254)}/32\n  latest handshake: {_n(m, 59)} seconds ago",
    lambda m: f"  public key: {m.of(BASE64, 43)}=\n  private key: (hidden)\n  listening port: {_n(m, 65000)}",
    lambda m: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{m.of(BASE64, 43)} anna@node{_n(m, 9)}",
    lambda m: f"|1|{m.of(BASE64, 27)}=|{m.of(BASE64, 27)}= ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ{m.of(BASE64, 300)}=",
    _certificate,
    _stream,
    lambda m: json.dumps({"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "Look at the pods.", "signature": m.of(BASE64, 380) + "=="}]}}),
    _prose,
    _prose,
    lambda m: f"{_at(m)} level=info ts={_n(m)} caller=compact.go:{_n(m, 900)} component=tsdb msg=\"write block\" mint={m.of(DIGITS, 13)} maxt={m.of(DIGITS, 13)} ulid=01{m.of(UPPER, 24)} duration={_n(m, 9)}.{_n(m, 999)}s",
    lambda m: f'{{"level":"info","ts":"{_at(m)}","logger":"http.log.access","request_id":"{m.uuid()}","traceparent":"00-{_hex(m, 32)}-{_hex(m, 16)}-01","headers":{{"Authorization":["REDACTED"],"Cookie":["REDACTED"],"User-Agent":["curl/8.5.0"]}}}}',
    lambda m: f'{{"time":"{_at(m)}","msg":"token refreshed","token_type":"bearer","expires_in":{_n(m)},"user":"{m.random.choice(USERS)}","key_id":"{_hex(m, 16)}"}}',
    lambda m: f"x-amz-request-id: {m.of(UPPER, 16)} x-amz-id-2: {m.of(BASE64, 75)}=",
    lambda m: f"cf-ray: {_hex(m, 16)}-FRA content-security-policy: script-src 'nonce-{m.of(BASE64, 22)}==' 'sha256-{m.of(BASE64, 43)}='",
    lambda m: f"Creating {_service(m)} ... done  network {_service(m)}_default  volume {_hex(m, 64)}",
    lambda m: f"INFO  [alembic.runtime.migration] Running upgrade {_hex(m, 12)} -> {_hex(m, 12)}, add token table",
    lambda m: f"borg: Archive fingerprint: {_hex(m, 64)}  Number of files: {_n(m)}  Duplicacy 1.{_n(m, 90)} GB",
    lambda m: f"restic: snapshot {_hex(m, 8)} saved, parent {_hex(m, 8)}, processed {_n(m)} files, 4{_n(m, 9)}.1 GiB in 1:{_n(m, 59):02}",
    lambda m: f"Nix: /nix/store/{m.of('0123456789abcdfghijklmnpqrsvwxyz', 32)}-{_service(m)}-11.{_n(m, 9)}.drv",
    lambda m: "decoded: " + base64.b64encode(f"the service {_service(m)} was restarted {_n(m)} times".encode()).decode(),
    lambda m: f"etag: W/\"{hashlib.md5(str(_n(m)).encode(), usedforsecurity=False).hexdigest()}\" x-request-id: {m.of(LOWER, 20)} age: {_n(m)}",
    lambda m: f"RUN --mount=type=secret,id=npm_token NPM_TOKEN=$(cat /run/secrets/npm_token) npm ci  # step {_n(m, 30)}/{_n(m, 30)} sha {_hex(m, 12)}",
    lambda m: f"{_service(m)}  | Enter password for {m.random.choice(USERS)}@{_ip(m)}: ********",
    lambda m: f"mysql -u {m.random.choice(USERS)} -p --host {_ip(m)} {_service(m)} < dump-{_n(m)}.sql",
    lambda m: f"curl -u ops: https://{_service(m)}.lan:8443/api/v1/query?query=up -H 'Authorization: Bearer $TOKEN' -o /dev/null # {_n(m)}",
    lambda m: f"docker run -d -p {_n(m, 65000)}:3000 -e GF_SECURITY_ADMIN_PASSWORD__FILE=/run/secrets/gf {_service(m)}/{_service(m)}:1.{_n(m, 9)}",
    lambda m: f"ansible: TASK [{_service(m)} : set password] changed: [node{_n(m, 9)}] => (item=None) no_log: true",
    lambda m: f"https://{_service(m)}.lan:{_n(m, 65000)}/login?redirect=%2Fd%2F{m.of(ALNUM, 9)}%2Fnode&theme=dark&key=overview",
]  # fmt: skip
