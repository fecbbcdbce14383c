"""Closed forms of an attack: prompt structure, commands, one phrase in several languages.

Known forms only: hostile meaning in new words is not found here. Every gap is bounded, and a pattern runs only on a
text that holds one of its words, so that most texts cost a few searches for plain words.
"""

from __future__ import annotations

import re

KEYS = (
    r"[^\s;|]{0,60}(?:\.ssh/|id_(?:rsa|ed25519|ecdsa)\b|\.aws/credentials|/etc/shadow|\.kube/config|\.netrc|\.pgpass|"
    r"\.git-credentials|\.docker/config\.json|\.env\b|/run/secrets/)"
)
KEY_WORDS = ".ssh/ id_rsa id_ed25519 id_ecdsa .aws/ /etc/shadow .kube/ .netrc .pgpass .git-c .docker/ .env /run/secrets"
SHELL = (
    r"(?:sudo\s{1,3}(?:-\S{1,20}\s{1,3})?)?(?:/\S{1,40}/)?"
    r"(?:(?:ba|z|da|k)?sh\b|(?:python|perl|ruby|node|php)[\d.]{0,4}(?![\w-]|\s-m\s)|iex\b)"
)
SENDS = r"\b(?:curl|wget|nc|ncat|socat|nslookup|dig|Invoke-WebRequest)\b"

# What it is, words of which the text holds one (in lower case), the pattern.
TALKS = "talks to the model: "
COMMAND = "holds a dangerous command: "
FORMS = tuple(
    (what, tuple(words.split()), re.compile(pattern, re.IGNORECASE))
    for what, words, pattern in (
        (
            f"{TALKS}asks to set instructions aside",
            "ignore disregard forget override bypass",
            r"\b(?:ignore|disregard|forget|override|bypass)\b[^.]{0,40}"
            r"\b(?:previous|prior|earlier|preceding|above|all|any|your|system|safety)\b[^.]{0,30}"
            r"\b(?:instructions?|rules?|prompts?|guidelines?|directions?|orders?|restrictions?)\b",
        ),
        (
            f"{TALKS}asks to set instructions aside",  # German, French, Spanish, Portuguese, Italian, Dutch, Polish
            "ignor vergiss vergess missacht oubli olvid esque dimentic negeer vergeet zapomnij",
            r"\b(?:z?ignor\w{1,4}|verg[ie]ss(?:en sie)?|missacht\w{1,2}|oubli\w{1,3}|olvid\w{1,3}|"
            r"esque[cç]\w{1,2}|dimentic\w{1,4}|negeer|vergeet|zapomnij)\b[^.]{0,40}\b(?:(?:an|vor)(?:weisung|gabe)\w{0,2}|regeln|instru\S{4,10}|consignes?|"
            r"r[eè]gles|reglas|regras|regole|istruzioni|regels|polece\w{1,3}|zasad\w?)\b",
        ),
        (
            f"{TALKS}asks to set instructions aside",  # Russian, Chinese, Japanese, Korean, Persian, Arabic
            "игнорируй забудь забудьте 忽略 无视 無視 忘 무시 잊 نادیده تجاهل",
            r"\b(?:про)?(?:игнорируй|забудь)(?:те)?\b[^.]{0,40}\b(?:инструкци|указани|правил)|(?:忽略|无视|無視|忘记|忘掉)[^。]{0,12}"
            r"(?:指令|指示|规则|提示)|(?:指示|命令|ルール)[^。]{0,8}(?:無視|忘れ)|(?:지시|명령|규칙)[^.]{0,10}(?:무시|잊)|"
            r"(?:دستور|قوانین)[^.]{0,30}نادیده|نادیده[^.]{0,30}(?:دستور|قوانین)|تجاهل[^.]{0,30}(?:تعليمات|التعليمات|الأوامر)",
        ),
        (
            f"{TALKS}gives orders",
            "you",
            r"\byou (?:must|should|will|have to|are to) now\b|\bfrom now on,? you\b",
        ),
        (
            f"{TALKS}gives a new role",
            "you pretend",
            r"\byou are now (?:a|an|the|in|no longer|free)\b|\bpretend (?:to be|that you|you are)\b",
        ),
        (f"{TALKS}names the prompt", "prompt instruction", r"\bsystem prompt\b|\bnew instructions?\s*:"),
        (
            f"{TALKS}asks for secrecy",
            "user operator human",
            r"\b(?:do(?: not|n't)|never) (?:tell|inform|alert|(?:mention|reveal|report) (?:this|it) to) "
            r"(?:the |any |your )?(?:user|operator|human)s?\b",
        ),
        (
            f"{TALKS}holds a role tag",
            "< [ human assistant system",
            r"</?(?:\w{1,20}:)?(?:system(?:[-_]\w{1,30})?|assistant|human|instructions?|tool_(?:use|call|result)s?|"
            r"thinking|invoke|function_(?:calls?|results?))\b[^>]{0,200}>|</user>|<\|[\w-]{1,40}\|>|\[/?INST\]|<</?SYS>>|"
            r"<(?:start|end)_of_turn>|(?:^|[.!?\"\n]\s{0,3}|#{1,6}\s{0,3}|\[)(?:human|assistant|system (?:message|"
            r"prompt|override|note|notice|update))\s?(?:\]|:\s{0,3}\S)|#{2,6}\s?system\s?:",
        ),
        (
            f"{TALKS}holds a tool call",
            '"type" "role" "tool "name" "function_call" "mcpservers"',
            r"\"(?:type|role)\"\s{0,5}:\s{0,5}\"(?:tool_use|tool_result|tool_calls?|function_call|function|system|assistant)\"|"
            r"\"(?:tool_calls|function_call|tool_use_id|mcpServers)\"\s{0,5}:|"
            r"\"(?:tool|name)\"\s{0,5}:\s{0,5}\"(?:Bash|Write|Edit|WebFetch|mcp__\w{1,60})\"",
        ),
        (
            f"{TALKS}holds a marker",
            "[memory: [event: [cooldown: # ## (confidence:",
            r"\[(?:MEMORY|EVENT|COOLDOWN):|#\s?(?:Add To Memory|Memorize|Remember):|"
            r"## Operational Memory|\(confidence:\s?[\d.]",
        ),
        (f"{TALKS}holds a comment", "<!-- <![cdata[ [//]:", r"<!--|<!\[CDATA\[|\[//\]:\s?#"),
        (
            f"{TALKS}holds an image or a script address",
            "![ data:text/ javascript:",
            r"!\[[^\]]{0,100}\]\(\s?https?:|\bdata:text/\w{1,20}[;,]|\bjavascript:\S",
        ),
        (
            f"{COMMAND}runs what it downloads",
            "curl wget iwr irm base64 powershell /dev/tcp/ ncat",
            rf"\b(?:curl|wget|iwr|irm)\b[^|;]{{0,200}}\|\s{{0,3}}(?:tee [^|]{{1,60}}\|\s{{0,3}})?{SHELL}|"
            r"(?:\bsh|\bbash|\bzsh|\bsource|(?<!\S)\.|\beval|\bpython3?)\s{1,3}(?:-c\s{1,3})?[\"']?(?:<\(|\$\(|`)\s{0,3}(?:curl|wget)\b|"
            rf"\bbase64\s{{1,3}}(?:-d|-D|--decode)\b[^|]{{0,60}}\|\s{{0,3}}{SHELL}|\bpowershell\b[^|]{{0,60}}\s-e(?:nc|ncodedcommand)?\s|"
            r"\b(?:ba)?sh\s{1,3}-i\s{0,3}>&?\s{0,3}/dev/tcp/|\bnc(?:at)?\s[^|;]{0,60}\s-e\s",
        ),
        (
            f"{COMMAND}sends key files out",
            KEY_WORDS,
            rf"\s(?:-[dFT]|--(?:data(?:-\w{{1,10}})?|form|upload-file|post-file))[ =]?{KEYS}|"
            rf"\b(?:scp|rsync)\b[^;|]{{0,80}}(?<!-i)\s{KEYS}[^;|]{{0,60}}\s\S{{1,60}}:|"
            rf"(?<!\S){KEYS}[^;|]{{0,80}}\|[^;]{{0,80}}{SENDS}|"
            rf"{SENDS}[^;]{{0,120}}(?:<|\$\(\s?\w{{1,10}}\s|`\w{{1,10}}\s){KEYS}|(?<!\S){KEYS}[^;]{{0,40}}/dev/tcp/|"
            rf"\b(?:send|upload|post|copy|mail|forward|paste)\b[^.]{{0,60}}\s{KEYS}[^;]{{0,60}}(?:https?://|\w@\w{{1,40}}\.\w)",
        ),
        (
            f"{COMMAND}deletes a root",
            "rm --no-preserve-root mkfs of=/dev/ :(){ :() /dev/sd /dev/nvme",
            r"\brm\s{1,3}(?:-{1,2}[\w-]{1,20}\s{1,3}){1,4}[\"']?(?:/|~|\$HOME|\$\{HOME\}|"
            r"/(?:etc|var|home|usr|boot|root|opt|srv|data|mnt|lib|bin))/?\*?[\"']?(?=$|[\s;|&.,)`'\"])|--no-preserve-root|"
            r"\bmkfs(?:\.\w{1,8})?\s{1,3}[^;|]{0,40}/dev/|\bdd\b[^;|]{0,80}\bof=/dev/(?:sd|nvme|vd|mmcblk|hd)|"
            r":\(\)\s?\{\s?:\|:&\s?\};|>\s?/dev/(?:sd[a-z]|nvme\d)",
        ),
        (
            f"{COMMAND}switches protection off",
            "dangerously bypasspermissions --yolo nopasswd authorized_keys chmod claudeops_",
            r"--(?:allow-)?dangerously-\w{1,30}|\bbypassPermissions\b|--yolo\b|\bNOPASSWD:\s?ALL\b|>>\s?\S{0,60}authorized_keys\b|"
            r"\bchmod\s{1,3}(?:-R\s{1,3})?0?777\s{1,3}/(?:\s|$|etc|root)|"
            r"\bCLAUDEOPS_(?:TRUST\s?=\s?[\"']?open|MAX_TIER\s?=\s?[\"']?[23])",
        ),
    )
)


def attack_form(reading: str) -> str:
    """Return the first form in a reading of a text, or ""."""
    lower = reading.lower()
    for what, words, pattern in FORMS:
        if any(word in lower for word in words) and pattern.search(reading):
            return what
    return ""
