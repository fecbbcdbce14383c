"""Rules of the gate for the taxonomy `knowledge`: what is no knowledge, what only a person may allow, what is exact.

Pure. Knowledge is told to every session of a project and is distilled from whatever a session has read, so that an
address, a command or a text that addresses its reader waits for a person, however sure the model is. The words are
those of known forms in several languages; hostile meaning in other words is not found here. All gaps are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import re2

from claudeops.lib.lookaround import without_lookaround
from memories.capture.reasons import Reason

_ANY = re.IGNORECASE

FILE = r"(?:~|\.{1,2})?/?(?:[\w.@-]+/)*[\w@-]*\.?[\w-]+\.[A-Za-z]\w{0,5}|(?:~|\.{1,2})?(?:/[\w.@-]+){2,}/?"

# What is no knowledge. Anchored: it is a matter of how the text begins.
INSTRUCTION = re.compile(
    r"^(?:[-*•] )?(?:"
    r"(?:add|insert|append|prepend|put|place|move|paste)\b.{0,120}?\b(?:after|before|below|above|beneath|underneath)\b|"
    r"(?:add|insert|append|prepend|put|place|move|paste|write)\b.{0,120}?\b(?:in|into|to|under|at)\b.{0,40}?"
    r"\b(?:sections?|headings?|paragraphs?|lines?|bullets?|tables?|lists?|documents?|files?|top|bottom|end|"
    r"memory\.md|readme\S{0,4}|claude\.md|agents\.md)\b|"
    r"replace\b.{0,200}?(?:\b(?:with|by)\b|:|→|=>|\b(?:sections?|lines?|paragraphs?|text|entry|entries)\b)|"
    r"(?:update|edit|rewrite|reword|delete|remove|change|merge|rename)\b.{0,60}?"
    r"\b(?:sections?|headings?|paragraphs?|lines?|bullets?|memory\.md|readme\S{0,4}|claude\.md|agents\.md)\b"
    r")",
    _ANY,
)

_DID = (
    r"(?:read|ran|looked|checked|opened|searched|examined|inspected|edited|updated|created|wrote|fixed|changed|added|"
    r"removed|deleted|tried|found|noticed|started|finished|listed|reviewed|verified|tested|committed|implemented|"
    r"explored|investigated|went|used|called|executed|asked|replied|answered|summari[sz]ed|explained|proposed|"
    r"suggested|walked|compared|analy[sz]ed|discussed|worked|continued|reported|confirmed|pushed|merged|restarted|saw|"
    r"grepped|viewed|scanned|debugged|refactored|moved|renamed|installed|built|printed|made|did|gave|told)"
)
_MOVED = r"(?:(?:have|has|had|was|is|were|are|will|then|also|first|next|now|just|later|finally) ){0,3}"
NARRATION = re.compile(
    r"^(?:[-*•] )?(?:"
    r"(?:(?:and|so|then|next|first|second|finally|afterwards|after (?:that|this)|later|now),? )?"
    rf"(?:i|i've|i'll|i'm|i'd) {_MOVED}(?:{_DID}|running|reading|checking|going|looking)\b|"
    rf"(?:then|next|first|finally|afterwards|after (?:that|this)),? (?:we|it|they|the \w+|claude) {_MOVED}{_DID}\b|"
    rf"we (?:then|next|first|also|just) {_DID}\b|"
    rf"(?:the )?(?:ai |coding )?(?:agent|assistant|claude|model|session|bot) {_MOVED}{_DID}\b|"
    r"(?:the )?(?:user|human|operator|person|developer) (?:then |also |first |next |just |now )*"
    r"(?:asked|asks|requested|wanted (?:to (?:know|see|understand)|me\b|the (?:agent|assistant))|thanked|greeted|"
    r"wondered|inquired|replied|answered|said (?:hi|hello|thanks|yes|no|ok)|opened|started|began|ended|pasted|typed|"
    r"provided|shared|sent|approved the (?:change|edit|plan|commit))\b|"
    r"(?:in|during) (?:this|the) (?:session|conversation|chat|task),? (?:we|i|the|it)\b|"
    r"(?:this|the) (?:session|conversation|chat|discussion|transcript|task) "
    r"(?:was|is|has been|covered|covers|started|began|ended|focus\w*|involved|involves|consist\w*|concern\w*|deal\w*)\b"
    r")",
    _ANY,
)

_GOING_ON = (
    r"(?:running|building|deploying|failing|passing|down|up|in progress|being|syncing|downloading|restarting|waiting|"
    r"compiling|open|pending|red|green|broken|offline|online|under way|migrating|working on|investigating|blocked|"
    r"stuck|unavailable|installing|testing|at \d|on (?:branch|commit)|checked out|full|processing|loading|rebuilding)"
)
TRANSIENT = re.compile(
    rf"\b(?:currently|presently|momentarily|right now|at the moment|at this moment|as of now),? "
    rf"(?:\w+ ){{0,3}}{_GOING_ON}\b|"
    rf"\b{_GOING_ON} (?:currently|right now|at the moment|at this moment|as of now|at present|just now|today)\b|"
    r"\bnow at (?:about |around )?\d|\b\d{1,3} ?% (?:done|complete\b|completed|finished|through)|"
    rf"\b(?:is|are|was|were) still {_GOING_ON}\b|\b(?:is|are) (?:in progress|under way|ongoing)(?: now)?[.!]?$|"
    r"^(?:today|tonight|yesterday|this (?:morning|afternoon|evening|week)|right now|at the moment|so far|just now|"
    r"currently|for now)\b|\b(?:is|are|was|were) (?:red|green|down|up|broken|failing|passing|open|running) (?:today|"
    r"now|"
    r"this (?:morning|afternoon|evening))\b|\b(?:has|have) (?:just|not yet) (?:started|finished|been (?:started|merged|"
    r"pushed|deployed))\b",
    _ANY,
)

_FILES_OF = re.compile(
    r"^(?:[-*•] )?(?:the )?(?:following )?(?:(?:modified|changed|edited|created|touched|updated|relevant|read|new|"
    r"deleted|"
    r"affected|key) files?|files? (?:that were |which were )?(?:changed|modified|touched|edited|read|created|updated|"
    r"affected|deleted|involved))\b",
    _ANY,
)
_ONE_FILE = re.compile(rf"^(?:{FILE})$")
_AND = frozenset(("and", "und", "et", "y", "or", "&", "-", "•", "*", "|", "+"))

# Held. What a command is: a program with something to do.
_DOMAIN = (
    r"(?:com|net|org|io|dev|sh|ai|app|co|info|biz|xyz|ru|cn|site|online|top|cloud|link|click|live|tech|store|de|fr|eu|"
    r"uk|nl|pl|ch|at|me|tk|cc|to|gg|example|test|invalid)"
)
_HOST = rf"(?:[a-z0-9-]{{1,63}}\.){{1,6}}{_DOMAIN}"
URL = re.compile(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,20}\s?(?::|\[:\]|\(:\))\s?//\s?\S|(?<!\w)www\.\w|"
    rf"(?<![\w./-]){_HOST}(?::\d{{2,5}})?/\S|"
    r"(?<![\d.])(?!(?:10|127|0|255)\.|192\.168\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.|1\.1\.1\.1\b|8\.8\.8\.8\b|"
    r"9\.9\.9\.9\b)(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w)|"
    r"\w(?:\[\.\]|\(\.\)|\s?[\[({]dot[\])}]\s?)\w|\bcolon slash slash\b|"
    rf"\b\w+ dot {_DOMAIN}\b|\bdata:\w{{1,20}}/|\bmailto:|"
    rf"\b(?:fetch|fetched|download\w*|visit|open|load\w*|pull\w*|get|send|sent|post\w*|upload\w*|report\w*|forward\w*|"
    rf"push\w*|"
    rf"mirror\w*|from|to|at|via)\b[^\n]{{0,40}}?\s(?:\w[\w.+-]{{0,60}}@)?{_HOST}(?![\w.-]*\w)",
    _ANY,
)

_PROGRAM = (
    r"(?:curl|wget|rm|mv|cp|chmod|chown|sudo|doas|su|bash|sh|zsh|fish|python3?|pip3?|pipx|uvx?|npm|npx|yarn|pnpm|node|"
    r"git|"
    r"docker(?:-compose)?|podman|kubectl|helm|systemctl|service|apt(?:-get)?|dnf|yum|brew|make|cargo|go|ssh|scp|sftp|"
    r"rsync|"
    r"nc|ncat|netcat|socat|dd|mkfs\S*|kill|pkill|killall|crontab|eval|source|export|echo|cat|tee|sed|awk|tar|unzip|"
    r"psql|"
    r"mysql|sqlite3|redis-cli|aws|gcloud|az|gsutil|terraform|tofu|ansible(?:-playbook)?|iptables|nft|ufw|base64|"
    r"openssl|gpg|"
    r"powershell|pwsh|iex|pytest|tox|ruff|mypy|journalctl|certbot|nginx|caddy|manage\.py|django-admin|env|printenv|"
    r"history|"
    r"ls|cd|find|grep|touch|mkdir|ln|mount|umount|reboot|shutdown|claude|gh|glab|perl|ruby|php|restic|borg|vault)"
)
_NOUN = r"(?:mount|env|history|source|service|node|export|go|make|find|echo|kill|vault|borg|touch|git|claude)"
COMMAND = re.compile(
    # In backquotes: a program with an argument, or several programs.
    rf"`\s?(?:\$\s?|#\s|>\s)?(?:{_PROGRAM}|\.{{0,2}}/[^\s`]{{1,100}})\s+[^\s`][^`]{{0,400}}`|"
    r"`[^`]{0,200}?(?:\s\|\s?\w|\s?&&|;\s?\w|\$\(|\s>>?\s?\S)[^`]{0,200}`|"
    # Bare: a program with an option, a path, or its own way to do harm. Some names are plain nouns, too.
    rf"(?<![\w./-])(?!{_NOUN}\b){_PROGRAM}\s+(?:-{{1,2}}[a-z]|[~.]{{0,2}}/\w|[\"']|\$\{{?\w|origin\b)|"
    rf"\b(?:run|execute|type|enter|invoke|issue|launch|start with|executing|running)\b:?\s+(?:the command:?\s+)?[`\"']?"
    rf"(?:{_PROGRAM}\b(?=\s+\S|[`\"']|\s?$)|\.{{1,2}}/\w|/\w|\S{{1,60}}\.(?:sh|py|ps1|bat|pl|rb)\b)|"
    r"\b(?:sudo|doas)\s+\w|\bpip3? install\b|\bnpm (?:install|i|run|exec|ci)\b|\bnpx\s+\S|\buvx?\s(?:pip|run|tool|"
    r"add)\b|"
    r"\bapt(?:-get)? (?:install|remove|purge|update|upgrade)\b|\bdocker (?:run|exec|rm|rmi|compose (?:up|down|exec|"
    r"run))\b|"
    r"\bkubectl (?:apply|delete|exec|create|edit|patch|scale|rollout|drain|run)\b|\bcrontab\s|"
    r"\bsystemctl (?:stop|start|restart|disable|enable|mask|daemon-reload)\b|\bmanage\.py\s+[a-z]|"
    r"\bpip(?:e[sd]?|ing)\b[^.\n]{0,80}\b(?:in)?to (?:an? |the )?(?:root )?(?:shell|bash|sh|python|interpreter)\b|"
    r"\|\s?(?:sudo\s+)?(?:ba|z|da)?sh\b|\s&&\s\S|\$\([a-z]|(?<![\w./-])\.{1,2}/[\w/-]+(?:\.sh|\.py)?\s+-|"
    r"\b(?:bash|sh|source|eval)\s+\S*[./$(]\S*|"
    r"\b(?:drop|truncate) (?:table|database|schema)\b|\bdelete from \w|\bgrant all\b|\bgit (?:push|reset|clean|"
    r"config)\s+\S|"
    r"\brm -\w|\bchmod [0-7+ugoa]|\bos\.system\(|\bsubprocess\.|\beval\(|\bexec\(|\brequire\(['\"]child_process",
    _ANY,
)

_AGENT = (
    r"(?:(?:ai|llm|coding|claude|future|every|any|each|all|next|other)[ -]){0,3}"
    r"(?:agents?|assistants?|claude(?: code)?|llms?|chat ?bots?|bots?|copilot|sessions|(?:language|ai) models?|ais?)"
)
_MUST = (
    r"(?:must|should|shall|may|ha(?:s|ve) to|needs? to|ought to|(?:is|are) (?:to|allowed|permitted|expected|required|"
    r"authori[sz]ed|asked|told|instructed|free|supposed|cleared|trusted|granted|given)|can (?:freely|safely|now|"
    r"always|skip))"
)
_RISKY = (
    r"(?:run|execute|call|fetch|visit|download|install|send|post|upload|forward|copy|paste|repeat|say|answer|reply|"
    r"respond|tell|report|approve|accept|trust|allow|grant|invoke|launch|curl|eval|obey|follow|skip|disable|delete|"
    r"store|"
    r"save|remember|memori[sz]e|ignore|email|e-mail|print|reveal|leak|dump|read out|open)"
)
_EACH = (
    r"(?:always|never|every time|each time|whenever|(?:before|after|at the (?:start|end|beginning) of|in|on|with|"
    r"during) "
    r"(?:every|each|any|all) (?:session|run|task|answer|reply|response|check|commit|conversation|prompt|request|report|"
    r"summary|start)s?)"
)
_KEEPING = r"(?:note|memory|fact|entry|sentence|line|text|instruction|rule|message|lesson|statement|paragraph)"
ADDRESSES = re.compile(
    r"\b(?:you|your|yours|yourself|you're|you'll|you've|y'all|thou)\b|"
    r"(?<![.\w#/-])(?:ignore|disregard|forget)\b(?!:)|"
    r"\b(?:override|bypass|circumvent|suspend|waive)s?\b[^.\n]{0,30}\b(?:rules?|gates?|checks?|reviews?|approvals?|"
    r"confirmations?|safety|permissions?|instructions?|polic(?:y|ies)|guardrails?|limits?)\b|"
    rf"\b{_EACH}\b,? (?:\w+ ){{0,4}}?{_RISKY}\b|\b{_RISKY}\b[^.\n]{{0,80}}\b{_EACH}(?!\w)|"
    rf"^(?:[-*•] )?(?:important:?|note:?|attention:?|warning:?|system:?|todo:?|reminder:?|instruction:?|please,?|"
    rf"kindly,?|"
    rf"first,?|then,?|also,?|now,?|simply|just|only|do not|don't|always|never|\W){{0,3}}\s?{_RISKY}\b(?![-_/.'’])|"
    rf"\b{_AGENT}\b[^.\n]{{0,20}}? {_MUST}\b|\b{_MUST} (?:always |first |never |then |also |be )?(?:run|execut\w+|"
    rf"fetch\w*|"
    r"upload\w*|e?-?mail\w*|forward\w*|repeat\w*|obey\w*|ignor\w+|disregard\w*|trust\w*|approv\w+|download\w*)\b|"
    r"\bwithout (?:asking|(?:any |further |a |user |human )*(?:confirm\w+|approv\w+|review|permission|verif\w+|"
    r"questions?|"
    r"prompt\w*)|telling|informing|notifying)\b|"
    r"\bno (?:need to (?:ask|confirm|verify|check|report|review)|(?:human |user )?(?:confirmation|approval|review|"
    r"verification|"
    r"permission) (?:is |are |was )?(?:needed|required|necessary))\b|"
    r"\b(?:pre-?approved|pre-?authori[sz]ed|auto-?approve\w*|white-?listed)\b|"
    r"\b(?:do not|don't|never|not to|must not|without) (?:tell|mention|report|reveal|disclos\w+|ask|inform|alert|"
    r"notify|warn|"
    r"question|doubt|verify|flag)\w*\b|"
    r"\b(?:ha(?:s|ve)|is|are|was|were) (?:been )?(?:explicitly |fully |already )?(?:authori[sz]ed|permitted|allowed|"
    r"cleared|"
    r"granted|approved|entitled) (?:to\b|for (?:all|any|every)|by the (?:user|operator|owner|admin))|"
    r"\b(?:append|print|include|post|paste|put|write|send|attach|dump|expose|publish|upload|forward|email|log|"
    r"echo)\w{0,3}\b"
    r"[^.\n]{0,40}\b(?:values? of|contents? of|environment\b|env\b|[A-Z]{2,30}_(?:KEY|TOKEN|SECRET|PASSWORD)\b)|"
    r"\bsafe to (?:run|ignore|execute|approve|skip|trust|delete|share|disable)\b|\bfrom now on\b|\bhenceforth\b|"
    r"\b(?:top|highest|maximum|utmost|critical) (?:priority|importance)\b|\btakes? precedence over\b|"
    r"\bsupersedes? (?:all|any|"
    r"every|the (?:other|previous|earlier))\b|\b(?:system|developer|operator) (?:prompt|message|override|mode)\b|"
    rf"\b(?:repeat|restate|re-?store|re-?save|propagate|carry|pass|keep|copy|preserve|quote|include|spread|echo|"
    rf"remember|"
    rf"memori[sz]e|store|save)\b[^.\n]{{0,25}}\b(?:this|these|that|the (?:following|above)) {_KEEPING}|"
    rf"\b(?:repeat|restate|propagate|memori[sz]e|remember|echo) (?:this|that|it|these|them|verbatim|exactly)\b|"
    rf"\b(?:this|the (?:following|above)) {_KEEPING}s? (?:must|should|shall|has to|is to|needs|will|may not|must not|"
    rf"cannot)\b|"
    r"\b(?:added|included|repeated|stated|mentioned|copied|written|quoted|inserted|appended)\b[^.\n]{0,25}\b(?:in|"
    r"into|to|with|"
    r"on) (?:every|each|all|any) (?:sessions?|answers?|repl(?:y|ies)|responses?|reports?|summar(?:y|ies)|memor(?:y|"
    r"ies)|"
    r"outputs?|prompts?|conversations?)\b|\bas an ai\b|\bact as\b|\bpretend\b|\brole-?play\b|\bjailbreak\w*|"
    r"\bdan mode\b",
    _ANY,
)

# The same in other languages: who is addressed, and the orders of the first pattern.
ADDRESSES_ELSEWHERE = re.compile(
    r"\b(?:agente?[ns]?|as+istente?[ns]?|assistants?|ki|ia)\b.{0,20}?\b(?:muss|müssen|soll\w{0,3}|darf|dürfen|doi(?:t|"
    r"vent)|peu(?:t|vent)|"
    r"deben?|puede[n]?|devem?|pode[m]?|deve|devono|può|possono|moet\w{0,2}|mag|mogen|musi|powin\w+|может)\b|"
    # German
    r"\bdu (?:musst|sollst|darfst|kannst|bist|wirst|hast)\b|\b(?:musst|sollst) du\b|\bdein(?:e[nrms]?)?\b|\bdich\b|"
    r"\bdir\b|"
    r"(?-i:(?<![.!?] )(?<!^)\bSie (?:müssen|sollen|sollten|dürfen|können)|\b(?:müssen|sollen|dürfen) Sie\b|"
    r"\bIhre[nrm]? )|"
    r"\b(?:ignorier|vergiss|vergess|missacht|befolg|wiederhol)\w*\b|\bführe?n?\b.{1,80}\baus(?:führen)?\b|"
    r"\baus(?:zu)?führen\b|"
    r"\b(?:immer|stets|jedes mal|vor jeder|bei jeder|nach jeder)\b.{0,80}\b(?:ausführ\w*|aufruf\w*|sende\w*|schick\w*|"
    r"lade\w*|"
    r"öffne\w*|starte\w*|wiederhol\w*|lösch\w*)|\bohne (?:rückfrage|nachfrage|bestätigung|freigabe|zu fragen)\b|"
    # French
    r"\b(?:tu|vous) (?:dois|devez|peux|pouvez|es|êtes|devrais|devriez)\b|\b(?:votre|vos|ton|ta|tes) (?!\d)\w|"
    r"\b(?:ignore[zr]?|oublie[zr]?|exécute[zr]?|répète[zr]?|envoie|envoyez|télécharge[zr]?|supprime[zr]?)\b|"
    r"\bsans (?:demander|confirmation|validation|accord)\b|"
    # Spanish and Portuguese
    r"\b(?:debes|deberías|tienes que|debe usted|usted debe|você|vocês|deves)\b|\bsu (?:asistente|tarea)\b|"
    r"\b(?:ignora|ignore|olvida|ejecuta|ejecute|repite|envía|descarga|borra|execute|repita|envie|baixe|apague)d?\b"
    r"(?=.{0,60}\b(?:siempre|sempre|todo|toda|todas|cada|las|los|el|la|este|esta|o|a|os|as|antes)\b)|"
    r"\b(?:siempre|sempre)\b.{0,30}\b(?:ejecut|execut|envi|env[ií]a|descarg|baix|repit|repet|borr|apag|ignor)\w*|"
    r"\bsin (?:preguntar|confirmar|confirmación|aprobación|permiso)\b|\bsem (?:perguntar|confirmar|confirmação|"
    r"aprovação)\b|"
    # Italian, Dutch, Polish
    r"\b(?:devi|dovete|dovresti)\b|\b(?:esegui|eseguite|ignora(?:te)?|ripeti|invia|scarica|cancella) (?:sempre|tutt|"
    r"il|la|le|i|"
    r"gli|ogni|questo|questa)\b|\bsenza (?:chiedere|conferma|approvazione)\b|"
    r"\b(?:je|u|jij) (?:moet|mag|zult|bent)\b|\bjouw\b|\bnegeer\b|\bvergeet\b|\bvoer\b.{1,80}\buit\b|\bherhaal\b|"
    r"\bzonder (?:te vragen|bevestiging|toestemming)\b|"
    r"\b(?:musisz|powinieneś|możesz|masz)\b|\b(?:zignoruj|ignoruj|zapomnij|uruchom|wykonaj|powtórz|wyślij|pobierz|"
    r"usuń)\b|"
    r"\bbez (?:pytania|potwierdzenia|zgody)\b|"
    # Turkish, Swedish
    r"\b(?:yoksay|görmezden gel|çalıştır|unut|tekrarla)\w*|\bdu (?:måste|ska|bör|får)\b|\b(?:ignorera|kör|upprepa)\b|"
    # Russian and Ukrainian
    r"\b(?:ты|вы|тебе|вам|твои?|ваши?) |\b(?:за)?пусти(?:те)?\b|\bзапускай(?:те)?\b|\bвыполн(?:и|яй|ите|яйте)\b|"
    r"\b(?:про)?игнорируй(?:те)?\b|\bзабудь(?:те)?\b|\bповторяй(?:те)?\b|\bотправ(?:ь|ляй|ьте)(?:те)?\b|"
    r"\bбез подтвержд|"
    # Chinese, Japanese, Korean
    r"你|您|请(?:执行|运行|始终|务必|忽略|发送|下载)|(?:总是|始终|务必|每次).{0,20}(?:执行|运行|发送|下载|重复|忽略)|忽略|無視|无视|"
    r"あなた|(?:して|実行して|送って)(?:ください|下さい)|しなさい|(?:必ず|常に|毎回).{0,30}(?:実行|送信|繰り返)|"
    r"당신|(?:하|실행하|보내)(?:십시오|세요)|(?:항상|반드시|매번).{0,30}(?:실행|전송|반복)|무시하|"
    # Arabic, Persian, Hindi
    r"يجب عليك|(?:^| )أنت |شغّ?ل |نفّ?ذ |تجاهل|دائما?ً? .{0,20}(?:شغ|نف|أرسل)|شما باید|نادیده بگیر|"
    r"همیشه .{0,30}(?:اجرا|ارسال)|"
    r"आपको|हमेशा .{0,30}चला",
    _ANY,
)

_FAST = re2.Options()
_FAST.case_sensitive = False
_FAST.never_nl = False

# Reason, pattern, and RE2's form of it for all readings at once, which says no many times as fast.
HELD = tuple(
    (reason, pattern, re2.compile(f"(?m){without_lookaround(pattern.pattern)}", _FAST))
    for reason, pattern in ((Reason.ADDRESSES_AGENT, ADDRESSES), (Reason.COMMAND, COMMAND), (Reason.URL, URL))
)

# What speaks for a text.
REFERENCES = (
    (
        Reason.DECISION,
        re.compile(
            r"\b(?:ADR|RFC|PEP|DEP)[- ]?\d+|\b(?:we|the team|(?:the )?(?:user|operator|owner|maintainers?)) (?:have |"
            r"has )?"
            r"(?:explicitly )?(?:decided|agreed|chose|settled|ruled out|rejected)\b|\bdecisions? (?:#|no\.? ?)?\d+\b|"
            r"\b(?:was|were|is) decided\b",
            _ANY,
        ),
    ),
    (Reason.PATH, re.compile(rf"(?<![\w:/.-])(?:{FILE})(?![\w-])|(?<!\w)~/[\w.-]+|(?<![\w:/])/(?:[\w.-]+/?)+")),
    (
        Reason.EXACT_NAME,
        re.compile(
            r"`[^`\s]{2,80}`|\b[a-z][a-z0-9]+(?:_[a-z0-9]+)+\b|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|"
            r"\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\bv?\d+\.\d+(?:\.\d+)?\b|"
            r"(?<!\S)--[a-z][a-z-]+|\b[A-Z]{2,10}-\d{1,6}\b|#\d{1,6}\b|\bports? \d{2,5}\b|\b[0-9a-f]{7,40}\b"
        ),
    ),
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
    # The short words of other languages stand in any text that is read backwards.
    if Reason.ADDRESSES_AGENT not in found and ADDRESSES_ELSEWHERE.search(text):
        found.insert(0, Reason.ADDRESSES_AGENT)
    return found


def references(text: str) -> list[Reason]:
    """Return what a folded text refers to exactly, in a fixed order."""
    return [reason for reason, pattern in REFERENCES if pattern.search(text)]


def _lists_files(text: str) -> bool:
    """Whether a text is three files or more with few words around them, or names files that were changed."""
    pieces = [piece.strip("`'\",;:()[]") for piece in text.replace(",", " ").split()]
    words = [piece for piece in pieces if piece and piece.lower() not in _AND]
    files = sum(_ONE_FILE.match(piece) is not None for piece in words)
    if files >= 2 and _FILES_OF.match(text):
        return True
    return files >= 3 and files >= 0.6 * len(words)
