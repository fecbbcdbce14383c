"""Rules of the gate for the taxonomy `knowledge`: what is no knowledge, what only a person may allow, what is exact.

Pure. Knowledge is told to every session of a project and is distilled from whatever a session has read, so that an
address, a command or a text that addresses its reader waits for a person, however sure the model is. The words are
those of known forms; hostile meaning in other words is not found here. All gaps are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import re2

from claudeops.lib.lookaround import without_lookaround
from memories.capture.knowledge_languages import ADDRESSES_ELSEWHERE
from memories.capture.reasons import Reason
from memories.capture.text import any_of, words

FILE = r"(?:~|\.{1,2})?/?(?:[\w.@-]+/)*[\w@-]*\.?[\w-]+\.[A-Za-z]\w{0,5}|(?:~|\.{1,2})?(?:/[\w.@-]+){2,}/?"
BULLET = r"^(?:[-*•] )?"

# What is no knowledge. It is a matter of how the text begins.

_PART = words("""
    sections? headings? paragraphs? lines? bullets? memory\\.md readme\\S{0,4} claude\\.md agents\\.md
""")
_PUT = words("add insert append prepend put place move paste")
INSTRUCTION = any_of(
    rf"{BULLET}{_PUT}\b.{{0,120}}?\b(?:after|before|below|above|beneath|underneath)\b",
    rf"{BULLET}(?:{_PUT}|write)\b.{{0,120}}?\b(?:in|into|to|under|at)\b.{{0,40}}?"
    rf"\b(?:{_PART}|tables?|lists?|documents?|files?|top|bottom|end)\b",
    rf"{BULLET}replace\b.{{0,200}}?(?:\b(?:with|by)\b|:|→|=>|\b(?:sections?|lines?|paragraphs?|text|entry|entries)\b)",
    rf"{BULLET}(?:update|edit|rewrite|reword|delete|remove|change|merge|rename)\b.{{0,60}}?\b{_PART}\b",
)

_DID = words("""
    read ran looked checked opened searched examined inspected edited updated created wrote fixed changed added
    removed deleted tried found noticed started finished listed reviewed verified tested committed implemented
    explored investigated went used called executed asked replied answered summari[sz]ed explained proposed
    suggested walked compared analy[sz]ed discussed worked continued reported confirmed pushed merged restarted saw
    grepped viewed scanned debugged refactored moved renamed installed built printed made did gave told
""")
_MOVED = r"(?:(?:have|has|had|was|is|were|are|will|then|also|first|next|now|just|later|finally) ){0,3}"
_THEN = r"(?:then|next|first|second|finally|later|now|afterwards|after (?:that|this))"
NARRATION = any_of(
    rf"{BULLET}(?:(?:and|so|{_THEN}),? )?(?:i|i've|i'll|i'm|i'd) {_MOVED}(?:{_DID}|running|reading|checking|going)\b",
    rf"{BULLET}{_THEN},? (?:we|it|they|the \w+|claude) {_MOVED}{_DID}\b",
    rf"{BULLET}we (?:then|next|first|also|just) {_DID}\b",
    rf"{BULLET}(?:the )?(?:ai |coding )?(?:agent|assistant|claude|model|session|bot) {_MOVED}{_DID}\b",
    rf"{BULLET}(?:the )?(?:user|human|operator|person|developer) (?:then |also |first |next |just |now )*"
    r"(?:asked|asks|requested|wanted (?:to (?:know|see|understand)|me\b|the (?:agent|assistant))|thanked|greeted|"
    r"wondered|inquired|replied|answered|said (?:hi|hello|thanks|yes|no|ok)|opened|started|began|ended|pasted|typed|"
    r"provided|shared|sent|approved the (?:change|edit|plan|commit))\b",
    rf"{BULLET}(?:in|during) (?:this|the) (?:session|conversation|chat|task),? (?:we|i|the|it)\b",
    rf"{BULLET}(?:this|the) (?:session|conversation|chat|discussion|transcript|task) "
    r"(?:was|is|has been|covered|covers|started|began|ended|focus\w*|involved|involves|consist\w*|concern\w*|"
    r"deal\w*)\b",
)

_STATE = words("""
    running building deploying failing passing down up in_progress being syncing downloading restarting waiting
    compiling open pending red green broken offline online under_way migrating working_on investigating blocked
    stuck unavailable installing testing at_\\d on_(?:branch|commit) checked_out full processing loading rebuilding
""")
_NOW = r"(?:currently|presently|momentarily|right now|at the moment|at this moment|as of now)"
TRANSIENT = any_of(
    rf"\b{_NOW},? (?:\w+ ){{0,3}}{_STATE}\b",
    rf"\b{_STATE} (?:{_NOW}|at present|just now|today)\b",
    rf"\b(?:is|are|was|were) still {_STATE}\b",
    r"\b(?:is|are|was|were) (?:red|green|down|up|broken|failing|passing|open|running) "
    r"(?:today|now|this (?:morning|afternoon|evening))\b",
    r"\b(?:is|are) (?:in progress|under way|ongoing)(?: now)?[.!]?$",
    r"\bnow at (?:about |around )?\d",
    r"\b\d{1,3} ?% (?:done|complete\b|completed|finished|through)",
    r"^(?:today|tonight|yesterday|this (?:morning|afternoon|evening|week)|right now|at the moment|so far|just now|"
    r"currently|for now)\b",
    r"\b(?:has|have) (?:just|not yet) (?:started|finished|been (?:started|merged|pushed|deployed))\b",
)

_TOUCHED = words("""
    modified changed edited created touched updated relevant read new deleted affected key involved
""")
_FILES_OF = any_of(
    rf"{BULLET}(?:the )?(?:following )?{_TOUCHED} files?\b",
    rf"{BULLET}(?:the )?files? (?:that were |which were )?{_TOUCHED}\b",
)
_ONE_FILE = re.compile(rf"^(?:{FILE})$")
_AND = frozenset(("and", "und", "et", "y", "or", "&", "-", "•", "*", "|", "+"))

# Held: an address.

_DOMAIN = words("""
    com net org io dev sh ai app co info biz xyz ru cn site online top cloud link click live tech store de fr eu uk
    nl pl ch at me tk cc to gg example
""")
_HOST = rf"(?:[a-z0-9-]{{1,63}}\.){{1,6}}{_DOMAIN}"
_CARRIED = words("""
    fetch fetched download\\w* visit open load\\w* pull\\w* get send sent post\\w* upload\\w* report\\w* forward\\w*
    push\\w* mirror\\w* from to at via
""")
URL = any_of(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,20}\s?(?::|\[:\]|\(:\))\s?//\s?\S",
    r"(?<!\w)www\.\w|\bmailto:|\bdata:\w{1,20}/",
    rf"(?<![\w./-]){_HOST}(?::\d{{2,5}})?/\S",
    rf"\b{_CARRIED}\b[^\n]{{0,40}}?\s(?:\w[\w.+-]{{0,60}}@)?{_HOST}(?![\w.-]*\w)",
    # Written so that no program makes a link of it.
    rf"\w(?:\[\.\]|\(\.\)|\s?[\[({{]dot[\])}}]\s?)\w|\bcolon slash slash\b|\b\w+ dot {_DOMAIN}\b",
)
PUBLIC_ADDRESS = re.compile(
    r"(?<![\w.])(?!(?:10|127|0|255)\.|192\.168\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.|1\.[01]\.[01]\.1\b|"
    r"8\.8\.[48]\.[48]\b|"
    r"9\.9\.9\.\d)(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w)"
)
"""An IP address that is neither private nor a well-known resolver."""

# Held: a command, which is a program with something to do.

_PROGRAM = words("""
    curl wget rm mv cp chmod chown sudo doas su bash sh zsh fish python3? pip3? pipx uvx? npm npx yarn pnpm node git
    docker(?:-compose)? podman kubectl helm systemctl service apt(?:-get)? dnf yum brew make cargo go ssh scp sftp
    rsync nc ncat netcat socat dd mkfs\\S* kill pkill killall crontab eval source export echo cat tee sed awk tar
    unzip psql mysql sqlite3 redis-cli aws gcloud az gsutil terraform tofu ansible(?:-playbook)? iptables nft ufw
    base64 openssl gpg powershell pwsh iex pytest tox ruff mypy journalctl certbot nginx caddy manage\\.py
    django-admin env printenv history ls cd find grep touch mkdir ln mount umount reboot shutdown claude gh glab
    perl ruby php restic borg vault
""")
_NOUN = words("""
    mount env history source service node export go make find echo kill vault borg touch git claude
""")
"""Programs whose names are plain words, too: without backquotes they are none."""
_START = words("run execute type enter invoke issue launch start_with executing running")
COMMAND = any_of(
    # In backquotes: a program with an argument, or several programs.
    rf"`\s?(?:\$\s?|#\s|>\s)?(?:{_PROGRAM}|\.{{0,2}}/[^\s`]{{1,100}})\s+[^\s`][^`]{{0,400}}`",
    r"`[^`]{0,200}?(?:\s\|\s?\w|\s?&&|;\s?\w|\$\(|\s>>?\s?\S)[^`]{0,200}`",
    # A program with an option or a path; what somebody is told to start.
    rf"(?<![\w./-])(?!{_NOUN}\b){_PROGRAM}\s+(?:-{{1,2}}[a-z]|[~.]{{0,2}}/\w|[\"']|\$\{{?\w|origin\b)",
    rf"\b{_START}\b:?\s+(?:the command:?\s+)?[`\"']?(?:{_PROGRAM}\b(?=\s+\S|[`\"']|\s?$)|\.{{1,2}}/\w|/\w|"
    r"\S{1,60}\.(?:sh|py|ps1|bat|pl|rb)\b)",
    # A program with its own way to change something.
    r"\b(?:sudo|doas)\s+\w|\brm -\w|\bchmod [0-7+ugoa]|\bcrontab\s|\bmanage\.py\s+[a-z]",
    r"\bpip3? install\b|\bnpm (?:install|i|run|exec|ci)\b|\bnpx\s+\S|\buvx?\s(?:pip|run|tool|add)\b",
    r"\bapt(?:-get)? (?:install|remove|purge|update|upgrade)\b",
    r"\bdocker (?:run|exec|rm|rmi|compose (?:up|down|exec|run))\b",
    r"\bkubectl (?:apply|delete|exec|create|edit|patch|scale|rollout|drain|run)\b",
    r"\bsystemctl (?:stop|start|restart|disable|enable|mask|daemon-reload)\b",
    r"\bgit (?:push|reset|clean|config)\s+\S",
    # A shell, a database, a programming language.
    r"\|\s?(?:sudo\s+)?(?:ba|z|da)?sh\b|\s&&\s\S|\$\([a-z]|(?<![\w./-])\.{1,2}/[\w/-]+(?:\.sh|\.py)?\s+-",
    r"\b(?:bash|sh|source|eval)\s+\S*[./$(]\S*",
    r"\bpip(?:e[sd]?|ing)\b[^.\n]{0,80}\b(?:in)?to (?:an? |the )?(?:root )?(?:shell|bash|sh|python|interpreter)\b",
    r"\b(?:drop|truncate) (?:table|database|schema)\b|\bdelete from \w|\bgrant all\b",
    r"\bos\.system\(|\bsubprocess\.|\beval\(|\bexec\(|\brequire\(['\"]child_process",
)

# Held: a text that addresses the agent.

_AGENT = (
    r"(?:(?:ai|llm|coding|claude|future|every|any|each|all|next|other)[ -]){0,3}"
    r"(?:agents?|assistants?|claude(?: code)?|llms?|chat ?bots?|bots?|copilot|sessions|(?:language|ai) models?|ais?)"
)
_GRANTED = words("""
    allowed permitted expected required authori[sz]ed asked told instructed free supposed cleared trusted granted
    given
""")
_MUST = (
    rf"(?:must|should|shall|may|ha(?:s|ve) to|needs? to|ought to|(?:is|are) (?:to|{_GRANTED})|"
    r"can (?:freely|safely|now|always|skip))"
)
_ORDER = words("""
    execute fetch install forward approve grant invoke curl eval obey follow skip disable delete remember
    memori[sz]e ignore reveal leak tell read_out
""")
_ORDER_OR_NOUN = words("""
    run call visit download send post upload copy paste repeat say answer reply respond report accept trust allow
    launch store save email e-mail print dump open
""")
"""Orders that are names of things as well: "Upload is limited to 3 MiB/s"."""
_OBJECT = (
    r"(?=\s+(?:the|a|an|all|any|every|each|this|that|these|those|it|them|its|no|only)\b|\s+[`\"'~$<]|\s+\S*[./]\S)"
)
_TIMES = words("""
    sessions? runs? tasks? answers? reply replies responses? checks? commits? conversations? prompts? requests?
    reports? summary summaries starts?
""")
_EACH = (
    r"(?:always|every time|each time|whenever|"
    rf"(?:before|after|at the (?:start|end|beginning) of|in|on|with|during) (?:every|each|any|all) {_TIMES})"
)
_FILLER = r"(?:(?:first|please|then|also|just|simply|silently|immediately|must|should|to|be|we|agents?|the|it) ){0,4}"
_OPENING = (
    r"(?:important:?|note:?|attention:?|warning:?|system:?|todo:?|reminder:?|instruction:?|please,?|kindly,?|first,?|"
    r"then,?|"
    r"also,?|now,?|simply|just|only|do not|don't|always|never|\W){0,3}\s?"
)
_KEEPING = words("""
    note memory fact entry sentence line text instruction rule message lesson statement paragraph
""")
_KEEP = words("""
    repeat restate re-?store re-?save propagate carry pass keep copy preserve quote include spread echo remember
    memori[sz]e store save
""")
_RULES = words("""
    rules? gates? checks? reviews? approvals? confirmations? safety permissions? instructions? polic(?:y|ies)
    guardrails? limits?
""")
_OUTPUT = words("""
    sessions? answers? repl(?:y|ies) responses? reports? summar(?:y|ies) memor(?:y|ies) outputs? prompts?
    conversations?
""")
ADDRESSES = any_of(
    # Its reader.
    r"\b(?:you|your|yours|yourself|you're|you'll|you've|y'all|thou)\b",
    rf"\b{_AGENT}\b[^.\n]{{0,20}}? {_MUST}\b",
    # An order: set something aside, do something, always.
    r"(?<![.\w#/-])(?:ignore|disregard|forget)\b(?!:|\s(?:lists?|files?|patterns?)\b)",
    rf"\b(?:override|bypass|circumvent|suspend|waive)s?\b[^.\n]{{0,30}}\b{_RULES}\b",
    rf"{BULLET}{_OPENING}(?:{_ORDER}\b(?![-_/.'’])|{_ORDER_OR_NOUN}\b{_OBJECT})",
    rf"\b{_EACH}\b,? {_FILLER}(?:{_ORDER}|{_ORDER_OR_NOUN})\b",
    rf"\b(?:{_ORDER}|{_ORDER_OR_NOUN})\b[^.\n]{{0,80}}\b{_EACH}(?!\w)",
    rf"\b{_MUST} (?:always |first |never |then |also |be )?"
    r"(?:execut\w+|(?:fetch|upload|e?-?mail|forward|repeat|download)\b|obey\w*|ignor\w+|disregard\w*|trust\w*|"
    r"approv\w+)",
    r"\bfrom now on\b|\bhenceforth\b|\bas an ai\b|\bact as\b|\bpretend\b|\brole-?play\b|\bjailbreak\w*|\bdan mode\b",
    r"\b(?:system|developer|operator) (?:prompt|message|override|mode)\b",
    # Rights, and what nobody is to know or to be asked.
    r"\bwithout (?:asking|telling|informing|notifying|(?:any |further |a |user |human )*"
    r"(?:confirm\w+|approv\w+|review|permission|verif\w+|questions?|prompt\w*))\b",
    r"\bno need to (?:ask|confirm|verify|check|report|review)\b",
    r"\bno (?:human |user )?(?:confirmation|approval|review|verification|permission) (?:is |are |was )?"
    r"(?:needed|required|necessary)\b",
    r"\b(?:pre-?approved|pre-?authori[sz]ed|auto-?approve\w*|white-?listed)\b",
    r"\b(?:ha(?:s|ve)|is|are|was|were) (?:been )?(?:explicitly |fully |already )?(?:authori[sz]ed|permitted|allowed|"
    r"cleared|"
    r"granted|approved|entitled) (?:to [a-z]|for (?:all|any|every)\b|by the (?:user|operator|owner|admin))",
    r"\bsafe to (?:run|ignore|execute|approve|skip|trust|delete|share|disable)\b",
    r"\b(?:do not|don't|never|not to|must not|without) (?:tell|mention|report|reveal|disclos\w+|ask|inform|alert|"
    r"notify|"
    r"warn|question|doubt|verify|flag)\w*\b",
    # Secrets in what it writes.
    r"(?<!never )(?<!not )\b(?:append|print|include|post|paste|put|write|send|attach|dump|expose|publish|upload|"
    r"forward|"
    r"email|log|echo)\w{0,3}\b[^.\n]{0,40}\b(?:values? of|contents? of|environment\b|env\b|"
    r"[A-Z]{2,30}_(?:KEY|TOKEN|SECRET|PASSWORD)\b)",
    # A memory that spreads or raises itself.
    rf"\b{_KEEP}\b[^.\n]{{0,25}}\b(?:this|these|that|the (?:following|above)) {_KEEPING}",
    r"\b(?:repeat|restate|propagate|memori[sz]e|remember|echo) (?:this|that|it|these|them|verbatim|exactly)\b",
    rf"\b(?:this|the (?:following|above)) {_KEEPING}s? (?:must|should|shall|has to|is to|needs|will|may not|cannot)\b",
    r"\b(?:added|included|repeated|stated|mentioned|copied|written|quoted|inserted|appended)\b[^.\n]{0,25}"
    rf"\b(?:in|into|to|with|on) (?:every|each|all|any) {_OUTPUT}\b",
    rf"\b(?:each|every|any) agent {_KEEP}s\b",
    r"\b(?:top|highest|maximum|utmost|critical) (?:priority|importance)\b|\btakes? precedence over\b",
    r"\b(?:supersede|override)s? (?:all|any|every|the (?:other|previous|earlier))\b",
)

_FAST = re2.Options()
_FAST.case_sensitive = False

# Reason, pattern, and RE2's form of it for all readings at once, which says no many times as fast.
HELD = tuple(
    (reason, pattern, re2.compile(f"(?m){without_lookaround(pattern.pattern)}", _FAST))
    for reason, pattern in ((Reason.ADDRESSES_AGENT, ADDRESSES), (Reason.COMMAND, COMMAND))
)

# What speaks for a text.

DECISION = any_of(
    r"\b(?:ADR|RFC|PEP|DEP)[- ]?\d+|\bdecisions? (?:#|no\.? ?)?\d+\b|\b(?:was|were|is) decided\b",
    r"\b(?:we|the team|(?:the )?(?:user|operator|owner|maintainers?)) (?:have |has )?(?:explicitly )?"
    r"(?:decided|agreed|chose|settled|ruled out|rejected)\b",
)
PATH = re.compile(rf"(?<![\w:/.-])(?:{FILE})(?![\w-])|(?<!\w)~/[\w.-]+|(?<![\w:/])/(?:[\w.-]+/?)+")
EXACT_NAME = re.compile(  # letter case is part of it
    r"`[^`\s]{2,80}`|\b[a-z][a-z0-9]+(?:_[a-z0-9]+)+\b|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|"
    r"\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\bv?\d+\.\d+(?:\.\d+)?\b|"
    r"(?<!\S)--[a-z][a-z-]+|\b[A-Z]{2,10}-\d{1,6}\b|#\d{1,6}\b|\bports? \d{2,5}\b|\b[0-9a-f]{7,40}\b"
)


def worthless(text: str) -> Reason | None:
    """Return why a folded text is no knowledge; None when it may be."""
    for reason, pattern in (
        (Reason.INSTRUCTION, INSTRUCTION),
        (Reason.NARRATION, NARRATION),
        (Reason.TRANSIENT, TRANSIENT),
    ):
        if pattern.search(text):
            return reason
    return Reason.FILE_LIST if _lists_files(text) else None


def held(text: str, readings: Iterable[str] = ()) -> list[Reason]:
    """Return why only a person may allow a folded text, whose other `readings` are read as well; in a fixed order."""
    read = list(dict.fromkeys((text, *readings)))
    plain = [reading for reading in read if reading.isascii() and reading.isprintable()]
    others = [reading for reading in read if reading not in plain]  # RE2 reads these in its own way
    joined = "\n".join(plain).encode()
    found = [
        reason
        for reason, pattern, first in HELD
        if any(pattern.search(reading) for reading in (read if first.search(joined) else others))
    ]
    # Read backwards, or with digits as letters, any text holds short words of other languages, and addresses.
    if Reason.ADDRESSES_AGENT not in found and ADDRESSES_ELSEWHERE.search(text):
        found.insert(0, Reason.ADDRESSES_AGENT)
    if URL.search(text) or PUBLIC_ADDRESS.search(text):
        found.append(Reason.URL)
    return found


def references(text: str) -> list[Reason]:
    """Return what a folded text refers to exactly, in a fixed order."""
    patterns = ((Reason.DECISION, DECISION), (Reason.PATH, PATH), (Reason.EXACT_NAME, EXACT_NAME))
    return [reason for reason, pattern in patterns if pattern.search(text)]


def _lists_files(text: str) -> bool:
    """Whether a text is three files or more with few words around them, or names files that were changed."""
    pieces = [piece.strip("`'\",;:()[]") for piece in text.replace(",", " ").split()]
    words = [piece for piece in pieces if piece and piece.lower() not in _AND]
    files = sum(_ONE_FILE.match(piece) is not None for piece in words)
    if files >= 2 and _FILES_OF.search(text):
        return True
    return files >= 3 and files >= 0.6 * len(words)
