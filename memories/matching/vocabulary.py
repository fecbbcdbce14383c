"""The words matching knows, as data: what to drop, which words mean the same, which mean the opposite.

Written for operational facts. Nothing here decides anything; add a word where an operator would miss it.
Every word is looked up as it is written first, then by its stem, so one form of a word is enough.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import snowballstemmer

_stemmer = snowballstemmer.stemmer("english")


def stem(word: str) -> str:
    """'restarted' → 'restart'. Very long words are left alone: they are not English."""
    return _stem(word) if len(word) <= 40 else word


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    return str(_stemmer.stemWord(word))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARTICLES = _words("a an the this that these those its their it he she they you we i")
"""Where one of these stands after a noun, a new phrase begins."""

FINITE = _words(
    "is are was were be been being am do does did has have had will would shall must should can could may might"
    " needs need needed requires require required"
)
"""Words that show a clause of its own: "gzip is on and brotli is off" is two, "start and stop hooks" is none."""

BE = _words("is are was were be been being am stay stays stayed remain remains remained")

STATES = _words("on up running stopped")
"""Say how something is only after a form of be: "is on", "must be up", "is not running"."""

SMALL = (
    ARTICLES
    | BE
    | _words(
        """do does did doing done has have had having will would there here them him her
    our my your us who whom whose which what such also too very really quite just as so then thus than and or
    both all every each any either always ever still already yet now currently nowadays presently again up
    please note remember that's own simply actually basically completely fully entirely strictly exactly precisely
    explicitly generally e.g i.e etc per se of to while whereas only-if anyway itself themselves how well"""
    )
)

HEDGES = _words(
    """about approximately approx approx. roughly around circa ca nearly almost usually typically normally generally
    probably likely apparently seemingly perhaps maybe somewhat ordinarily commonly mostly"""
)

NEGATIONS = _words("not no never nor neither none nobody nothing non cannot hardly lack lacks lacking")

PREPOSITIONS = _words(
    """on in at by for from to into onto over under via through with within across against behind between toward
    towards than of as instead beside near next inside outside along among above below"""
)

DIRECTED = _words("from to into onto over than behind instead by towards toward via through")
"""Prepositions whose two sides cannot be exchanged: "copied from nas to vault"."""

LEADS: Mapping[str, str] = MappingProxyType(
    {
        "after": "after", "following": "after", "afterwards": "after",
        "before": "before", "until": "before", "till": "before",
        "if": "when", "when": "when", "whenever": "when", "upon": "when", "during": "when", "while": "when",
        "once": "when", "where": "when",
        "unless": "unless", "except": "except",
        "independent_of": "independent", "without": "without",
    }
)  # fmt: skip
"""What opens a phrase of condition or order, and which of the few kinds it is."""

REASONS = _words("because since therefore hence but however although though otherwise whereas")
"""What opens a statement of its own."""

OBLIGATION = _words("must shall should ought")
NECESSITY = _words("need require necessary mandatory necessity obligatory essential depend prerequisite necessarily")
"""Unlike `must`, these turn into "optional" under a negation: "no restart needed"."""
OPTION = _words("optional unnecessary needless unneeded dispensable optionally")
POSSIBILITY = _words("can could may might able possible possibly")

PHRASES: Mapping[str, str] = MappingProxyType(
    {
        "no longer": "not", "not any more": "not", "not anymore": "not", "by no means": "not", "fail to": "not",
        "refuse to": "not", "unable to": "not", "not able to": "can not", "avoid": "not", "lack": "no",
        "has to": "need", "have to": "need", "had to": "need", "needs to": "need", "is to be": "must be",
        "depend on": "need", "depend upon": "need", "rely on": "need", "rely upon": "need", "dependent on": "need",
        "work without": "independent_of", "run without": "independent_of", "independent of": "independent_of",
        "independent from": "independent_of", "regardless of": "independent_of", "irrespective of": "independent_of",
        "prior to": "before", "ahead of": "before", "subsequent to": "after", "not until": "after",
        "only after": "after", "only once": "when", "only when": "when", "only if": "when", "as soon as": "when",
        "as long as": "while", "in case of": "if", "in case": "if", "provided that": "if", "every time": "when",
        "each time": "when", "because of": "because", "due to": "because", "owing to": "because",
        "thanks to": "because", "or else": "or", "in order to": "to", "so that": "to", "such that": "to",
        "instead of": "instead", "rather than": "instead", "more or less": "about", "or so": "about",
        "by default": "default", "by hand": "manual", "on its own": "automatic", "by itself": "automatic",
        "turn on": "enable", "switch on": "enable", "turn off": "disable", "switch off": "disable",
        "shut down": "stop", "power off": "poweroff", "power on": "poweron", "come up": "start", "bring up": "start",
        "spin up": "start", "boot up": "start", "start up": "start", "kick off": "start", "back up": "backup",
        "set up": "configure", "clean up": "clean", "look up": "lookup", "log in": "login", "sign in": "login",
        "log on": "login", "speed up": "speedup", "scale up": "scaleup", "scale down": "scaledown",
        "slow down": "slowdown", "cool down": "cooldown", "back off": "backoff", "free up": "free",
        "block storage": "blockstorage", "block device": "blockdevice", "block size": "blocksize",
        "off site": "offsite", "read only": "readonly", "read write": "writable", "up to date": "current",
        "out of date": "outdated", "in use": "active", "in place": "exist", "out of service": "inactive",
        "machine learning": "ml", "carry out": "perform", "at start": "on start",
        "at least": "at_least", "no less than": "at_least", "not less than": "at_least", "no fewer than": "at_least",
        "minimum of": "at_least", "more than": "at_least", "greater than": "at_least", "longer than": "at_least",
        "at most": "at_most", "up to": "at_most", "no more than": "at_most", "not more than": "at_most",
        "maximum of": "at_most", "less than": "at_most", "fewer than": "at_most", "shorter than": "at_most",
        "no later than": "at_most", "no longer than": "at_most",
    }
)  # fmt: skip
"""Words that mean another; matched on stems, longest first."""

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
configure config configuration conf cfg setting
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
lose lost loss
send sent
build built
find found
hold held
write written wrote
go goes went gone
make made
take took taken
get got gotten
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
"""
"""One meaning a line, its name first."""

OPPOSITE = """
enable activate active on allow permit grant accept | disable deactivate inactive off forbid forbidden deny disallow refuse reject prohibit block ban retire retired decommission deprecate
work succeed success successful successfully ok okay pass fine | fail failure failing break broke broken faulty
automatic automatically auto automated unattended | manual manually
encrypted encryption encrypt | plaintext unencrypted cleartext
safe safely harmless | unsafe dangerous risky harmful
same shared common | separate dedicated
public | private
internal | external
local locally | remote remotely
static | dynamic
persistent durable permanent | transient ephemeral volatile temporary
healthy | unhealthy
increase raise bump grow | decrease reduce lower shrink
quick fast | slow slowly
stable reliable | flaky unstable unreliable
valid | invalid expired
correct | incorrect wrong
current | outdated stale
online | offline
open | closed!
up running! | down! stopped!
writable | readonly
synchronous synchronously | asynchronous asynchronously async
stateful state | stateless
root | rootless
exist present! available installed | absent missing unavailable gone
visible | hidden
compatible | incompatible
reach reachable accessible | unreachable inaccessible
complete | incomplete partial
secure | insecure
"""
"""One question a line, those that answer yes | those that answer no; with ! only in this very form."""

EMPTY = _words("use take get make happen enough occur perform do set go configure become let come")
"""Verbs that say only that something is so; either text may have its own."""

LIGHT = _words(
    """run live serve provide handle enable up service system option parameter value policy integration process
    procedure feature port container instance application app component night software plugin module operation
    main version"""
)
"""Words that add little to the noun or verb beside them; one text may have them and the other not."""

IMPLIED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "size": _words("size space"), "time": _words("time duration long"), "percent": _words("percentage share"),
        "period": _words("frequency periodically regularly"), "clock": _words("clock time"),
    }
)  # fmt: skip
"""Nouns an amount of this dimension says by itself: 4 GB are a size."""

VALUE_NOUNS = _words(
    """mtu ttl limit timeout size interval retention replica count number threshold level priority weight quota memory
    factor keep retain wait retry rate length depth width height delay concurrency parallelism temperature"""
)
"""A number right after one of these is its value; after another word it is a label: "node 3", "PHP 8"."""

LABEL_NOUNS = _words(
    """port uid gid pid vlan version node disk database channel step line error code status http https raid udp tcp id
    ticket release slot shard rack partition queue index page rule phase tier zone worker server site"""
)
"""A number right after one of these is always a label."""

FUNCTION_WORDS = (
    SMALL | FINITE | HEDGES | NEGATIONS | PREPOSITIONS | frozenset(LEADS) | REASONS | OBLIGATION | OPTION | POSSIBILITY
)

WEEKDAYS = _words("monday tuesday wednesday thursday friday saturday sunday")


def _concepts() -> tuple[dict[str, str], dict[str, tuple[str, int]]]:
    same: dict[str, str] = {}
    for line in SAME.strip().splitlines():
        group = line.split()
        for word in group:
            for form in (word, stem(word)):
                same.setdefault(form, group[0])
    signs: dict[str, tuple[str, int]] = {}
    for line in OPPOSITE.strip().splitlines():
        yes, no = (side.split() for side in line.split("|"))
        for sign, side in ((1, yes), (-1, no)):
            for word in side:
                for form in {word.rstrip("!"), word if word.endswith("!") else stem(word)}:
                    signs.setdefault(form, (yes[0], sign))
    return same, signs


SAME_AS, SIGNS = _concepts()

_NEGATED = re.compile(r"(?:un|non)([a-z]{3,}(?:ed|able|ible))|([a-z]{4,})less")
_NOT_NEGATED = _words(
    "united unified underused uncommitted unless regardless wireless nevertheless nonetheless useless serverless"
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a word stands for: the name of its group, on which side of it (1 or -1), and how much it says."""

    name: str
    sign: int
    weight: int


EMPTY_WEIGHT, LIGHT_WEIGHT, FULL_WEIGHT = 0, 1, 2


def meaning(word: str) -> Meaning:
    """'disabled' → ('enable', -1), 'unmounted' → ('mount', -1), 'launching' → ('start', 1)."""
    return _meaning(word) if len(word) <= 40 else Meaning(word, 1, FULL_WEIGHT)


@lru_cache(maxsize=50_000)
def _meaning(word: str) -> Meaning:
    name, sign = _name_and_sign(word)
    weight = EMPTY_WEIGHT if name in _EMPTY else LIGHT_WEIGHT if name in _LIGHT else FULL_WEIGHT
    return Meaning(name, sign, weight)


def _name_and_sign(word: str) -> tuple[str, int]:
    if word in SIGNS:
        return SIGNS[word]
    name = SAME_AS.get(word) or SAME_AS.get(stem(word)) or stem(word)
    if name in SIGNS:
        return SIGNS[name]
    if (match := _NEGATED.fullmatch(word)) and word not in _NOT_NEGATED:
        name, sign = _name_and_sign(match.group(1) or match.group(2))
        return name, -sign
    return name, 1


_EMPTY = frozenset(SAME_AS.get(word, stem(word)) for word in EMPTY)
_LIGHT = frozenset(SIGNS.get(word, (SAME_AS.get(word, stem(word)), 1))[0] for word in LIGHT)
