"""Function words of English by their role in `clauses`, as data. Content words are in `vocabulary`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARTICLES = words("a an the this that these those its their it he she they you we i")
"""After a noun, one of these begins a new phrase."""

FINITE = words(
    "is are was were be been being am do does did has have had will would shall must should can could may might"
    " needs need needed requires require required"
)
"""Finite verbs mark a clause: "gzip is on and brotli is off" has two, "start and stop hooks" has none."""

BE = words("is are was were be been being am stay stays stayed remain remains remained get gets got getting gotten")

PARTICIPLES = words(
    "kept lost sent built found held written broken taken given shown run set put read made bound hung cut known done"
    " seen left chosen frozen stuck fed hit split spread overwritten rebuilt reset"
)
"""Irregular participles: with a form of be they make a passive."""

STATES = words("on up running stopped")
"""States only after a form of be: "is on", "must be up", "is not running"."""

SMALL = (
    ARTICLES
    | BE
    | words(
        """do does did doing done has have had having will would there here them him her me
    our my your us who whom whose which what such also too very really quite just as so then thus than and or
    both all every each any either always ever still already yet now currently nowadays presently again up
    please note remember that's own simply actually basically completely fully entirely strictly exactly precisely
    explicitly generally e.g i.e etc per se of to while whereas anyway itself themselves how well even fine
        someone somebody something"""
    )
)

HEDGES = words(
    """about approximately approx approx. roughly around circa ca nearly almost usually typically normally generally
    probably likely apparently seemingly perhaps maybe somewhat ordinarily commonly mostly"""
)

NEGATIONS = words("not no never nor neither none nobody nothing non cannot hardly")

PREPOSITIONS = words(
    """on in at by for from to into onto over under via through with within across against behind between toward
    towards than of as instead beside near next inside outside along among above below"""
)

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
"""Words that open a phrase of condition or order, with its kind."""

REASONS = words("because since therefore hence but however although though otherwise whereas")
"""Words that open a statement."""

OBLIGATION = words("must shall should ought")
NECESSITY = words("need require necessary mandatory necessity obligatory essential depend prerequisite necessarily")
"""Unlike `must`, these mean "optional" under a negation: "no restart needed"."""
OPTION = words("optional unnecessary needless unneeded dispensable optionally")
POSSIBILITY = words("can could may might able possible possibly")

FUNCTION_WORDS = (
    SMALL | FINITE | HEDGES | NEGATIONS | PREPOSITIONS | frozenset(LEADS) | REASONS | OBLIGATION | OPTION | POSSIBILITY
)
"""All but the words of necessity, which are verbs too."""
