"""The words of operations, as data: phrases, synonyms, opposites, and words that say little.

Nothing here decides anything; add a word where an operator would miss it. Every word is looked up as it is
written first, then by its stem, so one form of a regular word is enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .function_words import words

PHRASES = """
not = no longer | not any more | not anymore | by no means | fail to | refuse to | unable to | avoid
can not = not able to
no = lack
any_order = in any order | in no particular order | in no fixed order | in arbitrary order
independent_of = even if | even when | even without | independent of | independent
    from | regardless of | irrespective of
need = only available with | available only with | only possible with | possible only with | only work with | work
    only with
need = has to | have to | had to | needs to | depend on | depend upon | rely on | rely upon | dependent on
must be = is to be
before = prior to | ahead of
after = subsequent to | not until | only after
when = only once | only when | only if | as soon as | every time | each time
while = as long as
without = work without | run without
if = in case of | in case | provided that
because = because of | due to | owing to | thanks to
or = or else
to = in order to | so that | such that
instead = instead of | rather than
about = more or less | or so
default = by default
manual = by hand
automatic = on its own | by itself | by themselves
exhaust = use up | run out
disappear = go away
timeout = time out | run into a timeout | run into timeout
once a = only once a | only once an | only once per | just once a | just once an
fifteen minutes = a quarter of an hour | quarter of an hour
forty five minutes = three quarters of an hour
ready = ready to go
dedicated = its own | their own
not fix = make no difference to | make no difference | nothing for
enable = turn on | switch on
disable = turn off | switch off
stop = shut down
poweroff = power off
poweron = power on
start = come up | bring up | spin up | boot up | start up | kick off
backup = back up
configure = set up
clean = clean up
lookup = look up
login = log in | sign in | log on
signup = sign up
hold = hold back | held back
speedup = speed up
scaleup = scale up
scaledown = scale down
slowdown = slow down
cooldown = cool down
backoff = back off
free = free up
blockstorage = block storage
blockdevice = block device
blocksize = block size
offsite = off site
readonly = read only
writable = read write
current = up to date
outdated = out of date
active = in use
exist = in place
happen = in progress
inactive = out of service
ml = machine learning
perform = carry out
on start = at start
at_least = at least | exceed | no less than | not less than | no fewer than | minimum of | more than | greater than |
    longer than | larger than | bigger than | older than | higher than | in excess of | or newer |
    or later | or higher | or above | and up | or more | and above | newer than | later than
at_most = at most | up to | no more than | not more than | maximum of | less than | fewer than | shorter than |
    no later than | no longer than | smaller than | lower than | younger than | no larger than | no bigger than |
    no older than | limit to # | limit at # | cap at # |
    cap to # | restrict to # | not exceed | must not exceed | may not exceed | as much as | as many as
once = one time | a single time
several times = more than once | more than one time
lifetime = valid for | validity of
lan = local network | home network | internal network
asset = static file
work = stop failing | stop fail | stop to fail
revert = roll back | rolled back | undo
handover = hand over
permit = let in
retry = try again
fix = get rid of | clear up | take care of | put an end to
automatic = of its own accord | without intervention | without human intervention
manual = manual intervention | on foot
simultaneous = at the same time | in parallel
keep = hold on to | hang on to
expire = run out of validity
plaintext = plain text | clear text | cleartext
degraded = in a degraded state
disallow = not let
overwrite = write over
everyone = every one | all users | all people
"""
"""What several words mean, then the words (# where a number must follow); a line that is set in goes on with the one
before. Matched on stems, the longest phrase first."""

SAME = """
start boot launch startup begin began begun
stop shutdown halt
run ran execute trigger schedule
change edit modify alter
update refresh
large big huge
small little tiny
quick fast rapid speedy
memory ram
processor cpu
limit cap maximum max ceiling
minimum min
repository repo
database db
postgres postgresql psql
kubernetes k8s kube
javascript js
set configure configured configuring
configuration config conf cfg setting
directory folder dir
certificate cert
authentication auth authenticate
host machine box
delete remove erase wipe
clean cleanup purge
download fetch pull
issue obtain acquire
keep kept retain preserve retention
hang hung stall freeze froze frozen stuck
listen bind bound
live reside locate store sit
encrypt encryption encrypted
mail email
vm vms
pc pcs
lose lost loss
send sent
build built
find found
hold held
write written wrote
go goes went gone
make made
take took taken
leave left
choose chosen chose
give given gave
grow grew grown
often frequently
sometimes occasionally intermittently sporadically
rarely seldom
first initial
fix solve resolve cure remedy repair mend
verify validate
show display
alert alarm
login logon signin
move migrate relocate
reach reachable accessible
image picture
solely only exclusively
manage administer
perform carry
fill full
network net
delay lag
disappear vanish
defragment defragmentation defrag
finish end
audio sound
authorise authorize
synchronise synchronize sync
survive outlive
outage downtime
answer reply
retry rerun reattempt
create generate produce
replace exchange swap substitute
revert undo rollback
deliver delivery
thumbnail preview
index indices indexes
outgoing outbound
incoming inbound
provide supply offer
cause provoke
clip recording footage
everyone everybody anyone anybody
laptop notebook
password passphrase
error fault
notify inform
notification notice
job task
employee staff
admin administrator
documentation docs
copy duplicate
check inspect examine
connect connection
standby slave secondary
primary master
expire expiry expiration
expose publish
import ingest
compress compression
monitor watch observe
collect gather
distribute spread
throttle ratelimit
approve approval sign-off
deploy deployment rollout
evict eviction
prune pruning
kill terminate
attempt try
wifi wlan wireless
phone smartphone mobile
tv television
heater heating
lamp light
shutter blind blinds
sunset dusk
sunrise dawn
utilisation utilization usage
"""
"""One meaning a line, its name first."""

OPPOSITE = """
enable activate active on allow permit grant accept | disable deactivate inactive off forbid forbidden deny
    disallow refuse reject prohibit block ban retire decommission deprecate
work succeed success successful successfully ok okay pass healthy | fail failure failing break broke broken faulty
    unhealthy
automatic automatically auto automated unattended | manual manually
encrypted encryption encrypt | plaintext unencrypted cleartext
safe safely harmless | unsafe dangerous risky harmful
same shared! common | separate dedicated
public | private
internal | external
local locally | remote remotely
static | dynamic
persistent durable permanent | transient ephemeral volatile temporary
increase raise bump grow | decrease reduce lower shrink
quick fast | slow slowly
stable reliable | flaky unstable unreliable
valid | invalid expired!
correct | incorrect wrong
current | outdated
online | offline
open | closed!
run up! running! | down! stopped!
writable | readonly
synchronous synchronously | asynchronous asynchronously async
stateful state | stateless
root | rootless
exist present! available survive | absent missing! unavailable gone!
visible | hidden
compatible | incompatible
reach reachable accessible | unreachable inaccessible isolated!
complete | incomplete partial
secure | insecure
keep | lose drop discard
lock | unlock
mount | unmount umount
install | uninstall
load | unload
include | exclude omit
connect | disconnect
attach | detach
improve | worsen degrade
responsive | unresponsive
consistent | inconsistent
sufficient | insufficient
sequential sequentially serial serially | parallel concurrent concurrently simultaneous simultaneously
mutable | immutable
wired | wireless
known! | unknown!
verbose | quiet
full! | empty!
"""
"""One question a line, those that answer yes | those that answer no; with ! only in this very form. A line that is
set in goes on with the one before."""

EMPTY = words("use take make happen enough occur perform do set go become let come")
"""Verbs that say only that something is so; either text may have its own."""

LIGHT_VERBS = words("run live serve provide handle enable")
LIGHT_NOUNS = words(
    """service system option parameter value policy integration process procedure feature port container instance
    application app component software plugin module operation main version night"""
)
"""Words that add little to the noun or verb beside them; one text may have them and the other not."""

DENYING_VERBS = words(
    """disable deactivate forbid deny disallow refuse reject prohibit block ban retire decommission deprecate fail break
    decrease reduce lower shrink lose drop discard unlock unmount umount uninstall unload"""
)
"""Say no wherever they stand. The adjectives of the "no" side do so only of what they are said of: "login is
disabled" denies, "disabled users" are other users."""

VERSIONED = words("version kernel firmware release tag pin image debian ubuntu python php java driver chart")
"""Where one of these is spoken of, a bare number is a version, which names something."""

IMPLIED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "size": words("size space"), "time": words("time duration long"), "percent": words("percentage share"),
        "period": words("frequency periodically regularly"), "clock": words("clock time"),
    }
)  # fmt: skip
"""Nouns an amount of this dimension says by itself: 4 GB are a size."""

VALUE_NOUNS = words(
    """mtu ttl limit timeout size interval retention replica count number threshold level priority weight quota memory
    factor keep retain wait retry rate length depth width height delay concurrency parallelism temperature"""
)
"""A number right after one of these is its value; after another word it is a label: "node 3", "PHP 8"."""

LABEL_NOUNS = words(
    """port uid gid pid vlan version node disk database channel step line error code status http https raid udp tcp id
    ticket release slot shard rack partition queue index page rule phase tier zone worker server site"""
)
"""A number right after one of these is always a label."""

WEEKDAYS = words("monday tuesday wednesday thursday friday saturday sunday")

NOT_NEGATED = words(
    """united unified underused unsealed unplugged unpacked unzipped uncommitted unless regardless wireless nevertheless
    nonetheless useless serverless"""
)
"""Begin or end like a denial, and are none."""


def entries(table: str) -> list[str]:
    """The entries of a table, one string each."""
    return table.strip().replace("\n    ", " ").splitlines()
