"""Words that imply what they do not say, as data: axes of opposite leanings, and things of one kind.

"Is public" and "requires a login" share no word and no antonym, yet lean to the two ends of one axis. Evidence for
`weighing` alone, which adds it up; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from .meaning import meaning, stem
from .vocabulary import entries

AXES = """
public publicly anyone anybody everyone everybody anywhere internet world worldwide open anonymous anonymously guest
    passwordless exposed | private internal vpn lan login password token restricted credential authenticated closed
    protected behind account localhost firewalled invitation invite authentication
survive persist persistent persisted durable keep kept retain retained forever indefinitely outlive restore restored
    restorable recover recoverable keeps remembers remember endure permanent | lost lose loses gone wipe wiped drop
    drops dropped discard discarded ephemeral volatile deleted delete removed expire expires purged transient
    forget forgets forgotten vanish vanishes evicted cleared emptied temporary
automatic automatically unattended scheduled cron timer itself hourly daily nightly ci pipeline periodic periodically
    hands-off scripted | manual manually demand request operator someone human administrator interactive button click
    ask asks
encrypt encrypted encryption tls https ssl ciphered starttls | plaintext clear plain unencrypted http cleartext
    readable
fix fixed fixes help helped helps solve solved clear cleared resolve resolved cured effective vanished gone
    disappeared stopped subsided | persisted persist continue continued continues still useless ineffective remained
    remains remain recur recurred recurs returned worse unchanged difference nothing despite unaffected nonetheless
healthy fine stable ok works working up reliable green solid succeed succeeds succeeded pass passes smoothly
    responsive | degraded broken fail fails failing flaky down unstable crash crashes breaks faulty hang hangs red
    error errors stall stalls unreachable unresponsive corrupt dead offline
use used uses active live production current still running maintained in_use serves | retired decommissioned removed
    replaced abandoned gone moved deprecated dropped uninstalled dismantled unused obsolete dormant archived
    shut migrated idle superseded legacy
themselves yourself self-service freely | administrator admin approval approve approved invitation
before after first last order sequence | any_order parallel simultaneously independent
allow allowed may can permit permitted accept accepted open possible free welcome tolerated unrestricted
    unlimited reach reachable | forbid forbidden prohibited refuse refused refuses reject rejected deny denied block
    blocked closed locked isolated impossible restricted barred banned cannot off-limits disallowed walled
must need needs needed required requires mandatory necessary obligatory depend depends essential compulsory
    prerequisite indispensable enforced always | optional unnecessary opportunistic independent independently
    without superfluous needless skip skipped unneeded dispensable voluntary stateless irrelevant
shared share same common together one joint colocated alongside single central | own separate dedicated different
    another isolated per individual distinct exclusive
local locally itself self-hosted selfhosted premises onsite inhouse disk | hosted cloud remote remotely saas
    upstream external managed elsewhere offsite provider s3 nas
ordered sequential sequentially fixed guaranteed deterministic strict serial | random any unordered parallel
    shuffled arbitrary concurrently nondeterministic simultaneously
always every all both everything everyone forever permanently constantly each | never none nothing sometimes rarely
    occasionally seldom only solely alone exclusively
readonly immutable append-only frozen locked | writable mutable editable readwrite modifiable
immediately instantly instant realtime synchronous synchronously directly right | later delayed batch asynchronous
    asynchronously eventually deferred wait waits queued
idempotent safe safely harmless repeatable | break breaks duplicate duplicates twice dangerous unsafe corrupts
    risky harmful
live online rolling hot seamless uninterrupted while during running | stop stopped downtime offline interrupted
    maintenance outage pause halted
direct directly straight unproxied bypass bypasses bypassed circumvent | through via relay proxy behind smarthost
    gateway intermediary proxied served
single standalone one alone sole lone | cluster clustered replicated several multiple ha redundant members pair
    many set
present installed available exist exists has includes bundled comes | missing absent lacks no without separately
    unavailable
enabled on active enable activated switched logged recorded | off disabled disable inactive unused ignored skipped
    deactivated suppressed muted
open opened | closed shut
first before beforehand earlier prior | last after afterwards later
own self | hosted managed service
compressed zipped gzip zstd lz4 | uncompressed raw
static fixed reserved constant | dynamic dhcp changing variable
high fast quick quickly fastest | low slow slowly slowest sluggish
full complete whole entire | partial incremental differential part
exactly | several more twice repeatedly duplicates
unlimited uncapped | limited capped throttled at_most
inherit inherits | override overrides own
new newest latest | old oldest previous
up rising rises upward upwards | down falling falls downward downwards
full filled | empty emptied
ascending | descending
eager eagerly | lazy lazily
blacklist blocklist denylist blacklisted blocklisted | whitelist allowlist whitelisted allowlisted
pinned | floating unpinned
signed | unsigned
trusted | untrusted
verified | unverified
filtered | unfiltered
monitored | unmonitored
managed | unmanaged
versioned | unversioned
hot warm heated | cold cool cooled
light bright lit | dark dim
wet damp humid | dry
busy | idle
increasing increased growing rises raised | decreasing decreased shrinking shrinks falls lowered
"""
"""One axis a line: the words that lean one way | those that lean the other way."""

CIRCUMSTANCES = """
day daytime daylight midday noon | night nights nighttime overnight nightly midnight
weekday weekdays workday workdays | weekend weekends
primary master leader | standby secondary replica slave follower
incoming inbound ingress | outgoing outbound egress
upload uploads uploaded | download downloads downloaded
inside indoor indoors | outside outdoor outdoors
above over | below under beneath
upper top highest | lower bottom lowest
foreground | background
even | odd
"""
"""More axes, of when, where and which: two texts that lean to both ends of one, and differ in something else as well,
speak of two cases ("limited during the day", "unlimited at night")."""

KINDS = """
sqlite postgres mysql mariadb mongodb oracle cockroachdb redis valkey memcached duckdb clickhouse dynamodb
debian ubuntu fedora alpine centos rocky arch nixos windows linux macos freebsd
chrome firefox safari edge chromium
python go rust java javascript typescript php ruby kotlin perl bash node
gpu cpu tpu coral npu
ssd hdd nvme sata spinning tape usb flash
s3 minio nas nfs ceph longhorn disk volume bucket local cloud azure glacier b2 wasabi
zstd lz4 gzip brotli lzma snappy bzip2
traefik nginx caddy haproxy apache envoy istio
keycloak authelia authentik ldap okta google github gitlab
rabbitmq kafka nats redis sqs mqtt pulsar
wireguard openvpn ipsec tailscale zerotier
borg restic barman pgbackrest kopia duplicity velero rsync rclone tar pg_dump
docker podman containerd crio lxc kubernetes nomad swarm
prometheus influxdb graphite zabbix nagios datadog victoriametrics mimir
loki elasticsearch splunk graylog opensearch journald syslog stdout stderr file fluentd vector
slack telegram mail email sms pagerduty teams discord matrix signal webhook pushover ntfy phone pager
jenkins gitlab github drone woodpecker teamcity buildkite circleci ci laptop
terraform ansible puppet chef salt pulumi helm kustomize argocd flux
quad9 cloudflare google unbound pihole adguard bind dnsmasq coredns router
http dns tls-alpn dns-01 http-01
letsencrypt zerossl step-ca digicert acme
ext4 zfs btrfs xfs ntfs overlay2 lvm
raidz raidz2 mirror stripe raid1 raid5 raid10
udp tcp quic http https ssh ftp sftp smb imap pop3 smtp grpc rest amqp websocket
zookeeper kraft etcd consul raft
hourly daily nightly weekly monthly commit demand push merge
staging production development testing
sunset sunrise midnight noon dawn dusk evening morning night day
sensor switch timer contact button remote schedule app
conbee sonoff skyconnect deconz
host service severity cluster team name label tag url path region type alertname namespace node branch version date
roundrobin leastconn source random weighted
row statement mixed
always never ifnotpresent onfailure
marketing platform security development operations infrastructure data frontend backend finance
zigbee zwave wifi ethernet bluetooth thread matter
json yaml toml xml csv ini text protobuf avro parquet
npm yarn pnpm pip poetry uv
pytest unittest jest vitest mocha playwright cypress selenium
react vue angular svelte
utc local cet
monorepo repository repositories submodule
controller agent agents worker server servers client clients
user users admin admins root
flux influxql promql sql graphql
wpa2 wpa3 wep
md5 sha1 sha256 bcrypt argon2 scrypt
rsa ecdsa ed25519
allkeys-lru noeviction volatile-lru allkeys-lfu lru lfu fifo
postfix exim sendgrid mailgun ses sendmail
intel amd nvidia arm
zpool pool tank array
grafana kibana chronograf
memory disk database cookie
green blue red yellow black white
left right top bottom
north south east west
german english french spanish italian dutch japanese
dropbox nextcloud s3 nas gdrive onedrive
kerberos basic digest oauth saml
view table incremental seed
celery kubernetes local sequential
followers leader member members witness
"""
"""Things of one kind, a line each: where one stands in a slot the others do not."""


ALIKE = """
cause trigger provoke lead result force produce make
hold live reside keep store lie contain sit house
put drop place throw move
abort timeout cancel kill end stop terminate interrupt
face facial
person people human
photo image picture original
forward go route send pass relay direct
execute run start launch
remove purge delete drop clean clear empty expire
import ingest load consume read
shop store
detect recognise recognize recognition detection
slow sluggish
wake page alert notify
sync synchronise parity
exempt exclude except bypass skip
reserve limit restrict only
query request lookup
client device
account user
assign give hand allocate lease
answer reply respond response
return yield give deliver
log record write
need require want demand depend
finish complete end done
begin start
happen occur
appear show
try attempt
restart reboot
repair fix cure
lower reduce shrink decrease drop
raise increase grow bump double
copy mirror sync replicate transfer
protect guard secure
serve provide offer supply
build compile create generate
check verify test validate
watch monitor observe
pick choose select
refuse reject deny decline
approve confirm accept acknowledge
join enter
leave exit
split divide
merge combine join
contact reach connect
rotate roll
archive store
announce publish
print output
use employ utilise utilize
valid last live
"""
"""Words that may stand for one another beside the same words; looser than synonyms, and never enough to merge."""


def _alike() -> Mapping[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(entries(ALIKE)):
        for word in line.split():
            for key in {word, stem(word), meaning(word).name}:
                found.setdefault(key, set()).add(number)
    return MappingProxyType({word: frozenset(groups) for word, groups in found.items()})


def _axes() -> Mapping[str, tuple[tuple[int, int], ...]]:
    found: dict[str, dict[int, int]] = {}
    for number, line in enumerate(entries(AXES) + entries(CIRCUMSTANCES)):
        for sign, side in zip((1, -1), line.split(" | "), strict=True):
            for word in side.split():
                for key in {word, stem(word)}:
                    found.setdefault(key, {}).setdefault(number, sign)
    return MappingProxyType({word: tuple(axes.items()) for word, axes in found.items()})


def _kinds() -> Mapping[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(entries(KINDS)):
        for word in line.split():
            for key in {word, stem(word), meaning(word).name}:
                found.setdefault(key, set()).add(number)
    return MappingProxyType({word: frozenset(kinds) for word, kinds in found.items()})


_NONE: frozenset[int] = frozenset()
_AXES, _KINDS, _ALIKE = _axes(), _kinds(), _alike()
_FIRST_CIRCUMSTANCE = len(entries(AXES))


def alikes_of(name: str) -> frozenset[int]:
    """The groups of words that may stand for one another to which a word belongs, by its meaning's name."""
    return _ALIKE.get(name, _NONE)


@lru_cache(maxsize=20_000)
def leaning(word: str) -> tuple[tuple[int, int], ...]:
    """(axis, side) of a word: side 1 or -1."""
    return _AXES.get(word) or _AXES.get(stem(word), ())


def is_circumstance(axis: int) -> bool:
    """Whether an axis only says when, where or which."""
    return axis >= _FIRST_CIRCUMSTANCE


@lru_cache(maxsize=20_000)
def kinds_of(word: str) -> frozenset[int]:
    """The numbers of the kinds a word is one of."""
    return _KINDS.get(word) or _KINDS.get(stem(word)) or _KINDS.get(meaning(word).name, frozenset())
