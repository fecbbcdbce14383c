"""Read environment variables: kinds of values, and `read`, which settings.py calls once for each variable.

django-environ's casts are not used: they take any word for False.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping

BASE_DIR = Path(__file__).resolve().parent.parent

TRUE = {"1", "true", "yes", "on", "y", "t"}
FALSE = {"0", "false", "no", "off", "n", "f", ""}
MODEL_ROLES = ("observer", "classifier", "reflector", "triage", "judge", "rewriter")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T_co]):
    """A type of value. `parse` raises ValueError unless the value is `allowed` (in words; "" = any)."""

    allowed: str
    parse: Callable[[str], T_co]


@dataclass(frozen=True, slots=True)
class Variable(Generic[T_co]):
    """One environment variable. `shown` describes a default that is computed at start (a path, a host name)."""

    name: str
    kind: Kind[T_co]
    default: T_co
    shown: str = ""

    def value(self, source: Mapping[str, str]) -> T_co:
        """Return the typed value from `source`, or from the file that its `NAME_FILE` names.

        Raises ImproperlyConfigured with the name, the value and what is allowed.
        """
        try:
            raw = FileAwareMapping(env=source).get(self.name)
        except (OSError, UnicodeDecodeError) as error:
            raise ImproperlyConfigured(f"{self.name}_FILE names a file that cannot be read: {error}.") from error
        if raw is None:
            return self.default
        try:
            return self.kind.parse(raw)
        except ValueError:
            raise ImproperlyConfigured(f"{self.name} is {raw!r}; allowed is {self.kind.allowed}.") from None


VARIABLES: dict[str, Variable[Any]] = {}


def read(name: str, kind: Kind[T], default: T, shown: str = "") -> T:
    """Declare a variable, and return its value in the environment. See `Variable`."""
    VARIABLES[name] = Variable(name, kind, default, shown)
    return VARIABLES[name].value(os.environ)


CONSTANT = "it is a constant now"
SOURCE_RULE = "add a source rule in the admin, like Bash(ceph status), mcp__mail or Read(/srv/incoming)"
GONE = {
    "CLAUDEOPS_BACKUP_DAILY": "set CLAUDEOPS_BACKUP_KEEP, where 0 makes none",
    "CLAUDEOPS_HOUSE_*": SOURCE_RULE,
    "CLAUDEOPS_KNOWLEDGE_*": CONSTANT,
    "CLAUDEOPS_MAINTENANCE_ZONE": "set CLAUDEOPS_MAINTENANCE_HOUR, like 3 Europe/Berlin",
    "CLAUDEOPS_MATCHING_JUDGE_*": "set CLAUDEOPS_MODEL_JUDGE to http:NAME, and CLAUDEOPS_MODEL_URL and _KEY",
    "CLAUDEOPS_MEMORY_RELEVANT_*": CONSTANT,
    "CLAUDEOPS_MODEL_BUDGETS": "set CLAUDEOPS_MODEL_DAILY_USD, like 2,judge=0.5",
    "CLAUDEOPS_OBSERVE_IDLE": CONSTANT,
    "CLAUDEOPS_OUTSIDE_*": SOURCE_RULE,
    "CLAUDEOPS_PROPOSAL_DAYS": CONSTANT,
    "CLAUDEOPS_RECALL_AGE": CONSTANT,
    "CLAUDEOPS_RECALL_REWRITE_TIMEOUT": CONSTANT,
    "CLAUDEOPS_RECALL_REWRITE_*": "set CLAUDEOPS_MODEL_REWRITER to http:NAME, and CLAUDEOPS_MODEL_URL and _KEY",
    "CLAUDEOPS_REDEPLOYMENT_WINDOW_HOURS": "set CLAUDEOPS_REDEPLOYMENT_LIMIT, like 1/24",
    "CLAUDEOPS_REFLECT_*": CONSTANT,
    "CLAUDEOPS_RESTART_WINDOW_HOURS": "set CLAUDEOPS_RESTART_LIMIT, like 2/4",
    "CLAUDEOPS_STOP_GRACE": CONSTANT,
    "CLAUDEOPS_TELEMETRY_DAYS": CONSTANT,
    "CLAUDEOPS_TIER?_MEMORY_BUDGET": "set CLAUDEOPS_MEMORY_BUDGET, or the budget of an agent in the admin",
    "CLAUDEOPS_TRIAGE_BATCH": CONSTANT,
    "CLAUDEOPS_TRUSTED_MCP_SERVERS": SOURCE_RULE,
    "CLAUDEOPS_VECTOR_SEARCH": CONSTANT,
}
"""Names of earlier versions (shell patterns, the first that fits counts), and what to do instead."""


def refuse_old(source: Mapping[str, str]) -> None:
    """Raise ImproperlyConfigured when a variable of an earlier version is set: it would have no effect."""
    for name in sorted(source):
        for pattern, instead in GONE.items():
            if fnmatchcase(name.removesuffix("_FILE"), pattern):
                raise ImproperlyConfigured(f"{name} is set, but is no variable any more: {instead}.")


def unknown(source: Mapping[str, str]) -> list[tuple[str, str]]:
    """Find undeclared CLAUDEOPS_ variables, each with the nearest declared name (or "")."""
    return [
        (name, next(iter(difflib.get_close_matches(name, VARIABLES, n=1)), ""))
        for name in sorted(source)
        if name.startswith("CLAUDEOPS_") and name not in VARIABLES and name.removesuffix("_FILE") not in VARIABLES
    ]


# Kinds of values.


def only_if(allowed: bool, value: T) -> T:
    if not allowed:
        raise ValueError
    return value


def whole(low: int, high: int) -> Kind[int]:
    return Kind(f"a whole number from {low} to {high}", lambda raw: only_if(low <= int(raw) <= high, int(raw)))


def number(low: float, high: float) -> Kind[float]:  # nan is within no limits
    return Kind(f"a number from {low} to {high}", lambda raw: only_if(low <= float(raw) <= high, float(raw)))


def one_of(*words: str) -> Kind[str]:
    lower = [word.lower() for word in words]
    return Kind("one of " + ", ".join(words), lambda raw: words[lower.index(raw.strip().lower())])


def list_of(pattern: str, allowed: str) -> Kind[list[str]]:
    """Return the kind of a list whose items fit the regular expression. Commas inside parentheses are no separators."""
    return Kind(allowed, lambda raw: [only_if(bool(re.fullmatch(pattern, item)), item) for item in _tool_rules(raw)])


def _boolean(raw: str) -> bool:
    word = raw.strip().lower()
    return only_if(word in TRUE | FALSE, word in TRUE)


def _web_address(raw: str) -> str:
    value, parts = raw.strip(), urlsplit(raw.strip())
    is_whole = parts.scheme in ("http", "https") and parts.hostname and not (parts.username or parts.password)
    return only_if(not value or bool(is_whole), value)


def _budgets(raw: str) -> dict[str, float]:
    """Return the amounts by role; that of "" is the others'."""
    amounts = {"": 2.0}
    for part in names.parse(raw):
        role, _, amount = part.rpartition("=")
        role_name = only_if(role.strip() in ("", *MODEL_ROLES), role.strip())
        amounts[role_name] = number(0, 100_000).parse(amount)
    return amounts


def _limit(raw: str) -> tuple[int, float]:
    most, _, hours = raw.partition("/")
    return whole(0, 1000).parse(most), number(0.01, 8760).parse(hours)


def _hour(raw: str) -> tuple[int, str]:
    at, _, zone = raw.strip().partition(" ")
    return whole(0, 23).parse(at), only_if(zone in ("", *available_timezones()), zone or "UTC")


def _tool_rules(raw: str) -> list[str]:
    """Split at commas outside parentheses."""
    rules, depth = [""], 0
    for character in raw:
        depth = only_if(depth >= 0, depth + (character == "(") - (character == ")"))
        if character == "," and depth == 0:
            rules.append("")
        else:
            rules[-1] += character
    return only_if(depth == 0, [rule.strip() for rule in rules if rule.strip()])


def _folder(raw: str) -> Path:
    path = BASE_DIR / Path(raw.strip()).expanduser()
    return only_if(bool(raw.strip()) and (path.is_dir() or not path.exists()), path)


def _markdown_file(raw: str) -> str:
    path = Path(raw.strip()).expanduser()
    is_one = path.is_absolute() and path.suffix == ".md" and ".git" not in path.parts
    return only_if(not raw.strip() or is_one, str(path) if raw.strip() else "")


text = Kind("", str.strip)
names = Kind("", lambda raw: [part.strip() for part in raw.split(",") if part.strip()])
hook_sets = list_of("agents|cooldowns|decisions", "any of agents, cooldowns, decisions")
budgets = Kind(f"an amount, and those of roles, like 2,judge=0.5; roles are {', '.join(MODEL_ROLES)}", _budgets)
limit = Kind("a number of actions and the hours in which they count, like 2/4", _limit)
boolean = Kind("true or false", _boolean)
hour = Kind("an hour from 0 to 23, and a time zone, like 3 Europe/Berlin", _hour)
web_address = Kind("an address that begins with http:// or https://, without a user or password in it", _web_address)
tool_rules = Kind("tool rules like Read,Bash(docker ps *) with balanced parentheses", _tool_rules)
folder = Kind("the path of a folder, not of a file", _folder)
markdown_file = Kind("the absolute path of a file that ends with .md, or nothing", _markdown_file)
