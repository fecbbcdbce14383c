"""What a text is about, as far as it matters for trust: a wide net of words in several languages. Pure.

It does not say that a text is hostile. What it finds needs a confirmation when the session had read outside text, so a
find too many costs a wait, a find too few an injection. It reads what the gate reads, so that a disguise hides nothing.
Words are stems without accents; all gaps are bounded.
"""

from __future__ import annotations

import re
from functools import lru_cache

import re2

from claudeops.lib.lookaround import without_lookaround
from memories.capture.attack import readings
from memories.capture.text import fold

LONGEST = 1_000
"""Characters that are read. A longer text is a topic of its own: observations are short."""
GAP = r"[^\n]{0,70}?"

AGENT = (
    r"\bsessions (?:for|run|start|end|look|that|on)\b|\bunattended\b|\b(?:rule|limit)s? (?:against|about)\b|"
    r"\b(?:earlier|older|former|previous|other) (?:notes?|memor\w+|entr\w+)|"
    r"\bwatchers?\b|\bobservers?\b|\bsessions? (?:should|must|may|can|needs?|ha(?:s|ve) to)\b|"
    r"\bowners?\b|\bthe team\b|\bteams?\b|\bvendors?\b|\bcustomers?\b|\btickets?\b|\bon purpose\b|"
    r"\bcontacts?\b|\bpolic(?:y|ies)\b|"
    r"\bbudgets?\b|\bagreed\b|\bagreement|\brecommend\w*|\bsupport (?:asks?|wants?|needs?|team)|"
    r"\bbesitzer\w*|\bproprietaire|"
    r"\bpropietari\w+|\bproprietari\w+|\beigenaar|\bhersteller\w*|\bfournisseur\w*|\bproveedor\w*|"
    r"\bfornitore|\bleverancier|"
    r"владел|поставщик|所有者|供应商|客户|소유자|공급업체|المالك|مالک|"
    r"\bclaude\w{0,5}|\bclaudeops|\bthe (?:ai|llm|bot)\b|\bassistants?\b|\bassistente|\basistente|\bassistenten?\b|"
    r"(?<!user[- ])(?<!user)(?<!node )(?<!ssh[- ])(?<!gpg[- ])\bagents?\b(?!\s(?:pool|forward|version|port|"
    r"socket))|\bagenten?\b|\bagente\b|"
    r"\bprompts?\b|\binstruc\w+|\binstrukt\w+|\banweisung\w*|\bconsignes?\b|\bistruzion\w+|\bguidelines?\b|"
    r"\btier[- ]?[0-3]\b|\btiers\b|\bescalat\w+|\beskal\w+|\bguardrail\w*|\bguards?\b|\bautonom\w+|\bsupervis\w+|"
    r"\b(?:your|you|yourself)\b|\boperators?\b|\boperador\w*|\boperateur|\boperatore|\bbetreiber\w*|\bbeheerder|"
    r"\badministra\w+|\badmins?\b|\bsysadmin|\bmaintainer\w*|\bmemor(?:y entr|ies\b)|\breview(?:er|s|ed)?\b|"
    r"агент|ассистент|инструкц|оператор|администратор|代理|助手|指令|运维|管理员|管理者|エージェント|指示|"
    r"에이전트|관리자|지시|وكيل|تعليمات|"
    r"المسؤول|دستیار|مدیر"
)
RIGHTS = (
    r"\bremote (?:access|help|hands|management|support)|\bzugang\b|\bzugriff\w*|"
    r"\bmay (?:be )?(?:read|writ|delet|log|tak|open|send|cop)\w*|\bask (?:no ?one|nobody)|\bno ?(?:one|"
    r"body) (?:needs|has) to|\buid 0\b|"
    r"\b(?:lock|limit|ban|restriction|rule)s?\b[^\n]{0,60}\b(?:lifted|void|waived|no longer)\b|"
    r"\b(?:livello|stufe|niveau|nivel|poziom) (?:\d|tre|drei|trois|tres|drie)\b|"
    r"\bpermission\w*|\bpermit(?:ted|s)?\b|\bpriv[ie]leg\w*|\bprivilegi\w*|\bauthori[sz]\w+|\bautori[sz]\w+|"
    r"\bberecht\w+|"
    r"\bautoriz\w+|\bsudo\w*|\bas root\b|\broot (?:access|login|shell|rights?)|\bgrants?\b|\bgranted\b|"
    r"\bgewahr\w+|\berlaub\w+|"
    r"\ballowed to\b|\bmay (?:be )?(?:run|use|chang|edit|restart|stop|access|act|approv)\w*|"
    r"\bwithout (?:asking|approv\w+|confirm\w+|review|permission|waiting|a human)|"
    r"\bohne (?:ruckfrage|nachfrage|bestatigung|freigabe|zu fragen)|\bsans (?:demander|confirmation|validation|"
    r"accord)|"
    r"\bsin (?:preguntar|confirmar|confirmacion|aprobacion|permiso)|\bsem (?:perguntar|confirm\w+|aprov\w+)|"
    r"\bsenza (?:chiedere|conferma|approv\w+)|"
    r"\bzonder (?:te vragen|bevestiging|toestemming)|\bbez (?:pytania|potwierdz\w+|zgody)|\bapprov\w+|"
    r"\bpre-?approv\w+|\bgenehmig\w+|\bfreigegeben|"
    r"\bapprouv\w+|\baprob\w+|\baprov\w+|\bconfirmation\b|\bconsent\b|\btrust(?:ed|s)?\b|\bvertrau\w+|"
    r"\bwhite-?list\w*|\ballow-?list\w*|\bsafe-?list\w*|"
    r"\bexempt\w*|\bon behalf\b|\bfull access\b|\bvollzugriff|\bacces complet|\bacceso total|\bunrestricted|"
    r"\bexception\b|"
    r"разреш|права |доступ|без подтвержд|без спроса|довер|权限|許可|授权|批准|无需确认|無需|信任|承認|"
    r"確認なし|信頼|권한|승인|허용|صلاحي|إذن|"
    r"موافق|اجازه|مجوز"
)
SILENT = (
    r"\b(?:not|never|no|don'?t|doesn'?t|skip|omit|without|ignor\w+|disregard\w*|suppress\w*|mut(?:e|ed|ing)|"
    r"silenc\w+|leave out|hide|needn'?t|"
    r"nicht|nie|kein\w*|ignorier\w*|weglassen|ne|pas|jamais|no|nunca|nao|non|mai|niet|geen|nooit|nie|bez)\b"
)
REPORT = (
    r"\b(?:writ(?:e|es|ten|ing)|not(?:e|es|ed)|document\w*)\b|"
    r"\b(?:report(?:s|ed|ing|able)?|mention\w*|tell|told|notif\w+|alert(?:s|ed|ing)?|alarm\w*|flag(?:s|ged)?|"
    r"ticket\w*|summar\w+|incident\w*|"
    r"escalat\w+|record(?:ed|ing)?|log(?:ged)?|investigat\w+|look(?:ed)? into|concern\w*|follow(?:ed)? up|raise[ds]?|"
    r"meld\w+|bericht\w*|erwahn\w+|signal\w*|rapport\w*|mention\w*|inform\w*|report\w*|notific\w+|avis\w+|"
    r"segnal\w+|alert\w*|melden|gemeld|zglasz\w+|raport\w*)\b"
)
SUSPECT = (
    r"\b(?:alerts?|alarms?|warnings?|errors?|log-?ins?|sign-?ins?|attempts?|intrusi\w+|attack\w*|scans?|"
    r"connections? from|failures?|unknown|suspicious|anomal\w+)\b"
)
CALM = (
    r"\b(?:noise|benign|by design|intended|meant to|known|tests?|drills?|expected|normal|nothing|fine|closed|"
    r"resolved|approved|legitimate|authentic|a broken|faulty|exercise)\b"
)
REPORTS = (
    r"\blook away\b|\b(?:void|discounted|not count|counts? for nothing)\b|"
    rf"{SUSPECT}{GAP}{CALM}|{CALM}{GAP}{SUSPECT}|\b(?:everything|all) is (?:fine|well|ok|healthy)|\b(?:mark|"
    rf"close|count|treat|rate)\w*\b[^\n]{{0,40}}\b(?:healthy|ok|fine|green|resolved|closed|passed|"
    rf"success\w*)\b|"
    rf"{SILENT}{GAP}(?:{REPORT})|(?:{REPORT}){GAP}{SILENT}|\bfalse (?:alarm|positive|alert)\w*|\bfehlalarm\w*|"
    rf"\bfausse alerte|\bfalsa alarma|\bfalso (?:positivo|alarme|allarme)|"
    r"\b(?:can|may|should|must|to) (?:safely )?(?:be )?ignor\w+|\bignore(?:d)?\b|\bdisregard\w*|\bno (?:action|"
    r"attention|follow-?up|investigation)\b|"
    r"\bnothing to (?:worry|report)|\bgenegeerd|\bgenoreerd|\bsafe to (?:ignore|dismiss)|\bdismiss\w*|"
    r"\bkann ignoriert|\bignorier\w+|"
    r"\bunbedenklich|\bpeut etre ignor\w+|\bsans gravite|"
    r"\bse puede ignorar|\bpode ser ignorad|\bpuo essere ignorat|\bkan genegeerd|не сообща|не докладыва|"
    r"игнорир|忽略|不要报告|无需报告|不必上报|无需上报|不用上报|无须上报|不用上报|无视|報告しない|報告不要|"
    r"無視|보고하지|무시|"
    r"تجاهل|نادیده"
)
CREDENTIALS = (
    r"\bconnection strings?\b|\bdot ?(?:files|folders)\b|"
    r"\bkeys? (?:of|for|to)\b|\benvironment of\b|\benv(?:ironment)? variables?\b|\boutput of env\b|"
    r"\bpass-?(?:word|wd|phrase|code)s?\b|\bpassw\w*|\bkennwort\w*|\bmots? de passe|\bcontrasen\w+|\bsenhas?\b|"
    r"\bwachtwoord\w*|\bhas[lł]o\b|"
    r"\bsecrets?\b|\bgeheimnis\w*|\bsecreto\w*|\bsegredo\w*|\bsegret[oi]\b|\bgeheim\w*|\btokens?\b|\bjetons?\b|"
    r"\bcredential\w*|\bzugangsdat\w+|\bidentifiants?\b|"
    r"\bcredencia\w+|\bcredenzial\w+|\binloggegevens|\b(?:api|access|private|ssh|signing|encryption|master|"
    r"session|deploy|recovery|root|host|license|gpg|age)[-_ ]?keys?\b|"
    r"\bkeyfile\w*|\bkey (?:file|pair|material)s?\b|\bkeys? (?:is|are|lies?|lives?) (?:in|at|under)|"
    r"\b(?:privater?|geheimer?) schlussel|\bschlussel\b|\bcle (?:privee|api|ssh)|\bclaves?\b|\bchaves? |"
    r"\bchiav[ei]\b|"
    r"\bkeyring\w*|\bkeychain\w*|\bvault\w*|\bkubeconfig\w*|\bid_(?:rsa|ed25519|ecdsa)|\.ssh\b|\.env\b|\.netrc|"
    r"\.pgpass|/etc/shadow|/run/secrets|\.pem\b|\.aws\b|\.kube\b|"
    r"\bauthorized_keys|\bcookies?\b|\b2fa\b|\bmfa\b|\botp\b|\btotp\b|\bseed phrase|\bbearer\b|\boauth\w*|"
    r"\blog-?in (?:data|details)|\bjwts?\b|"
    r"парол|секрет|токен|ключ|учетн|密码|密碼|密钥|密鑰|令牌|凭证|凭据|パスワード|秘密|トークン|認証情報|"
    r"비밀번호|토큰|비밀키|자격 증명|كلمة (?:المرور|"
    r"السر)|رمز|مفتاح|رمز عبور|گذرواژه"
)
TLD = (
    "com|net|org|io|dev|app|sh|me|co|info|biz|xyz|top|site|online|cloud|ai|ru|cn|tk|cc|su|pw|to|ly|gg|gl|onion|"
    "de|fr|es|it|nl|pl|br|uk|eu|us|ch|at|be|cz|ua|ir|jp|kr|in|link|click|zip|page|pro|tech|store|live|example|invalid|test"
)
HOSTS = (
    r"\bport[- ]forward\w*|"
    r"\bpublic(?:ly)? (?:folder|share|bucket|link|page|director\w+)|"
    r"\b(?:https?|ftps?|sftp|wss?|git|ssh|tcp|udp|s3|gs)://(?!(?:localhost|127\.|10\.|192\.168\.|"
    r"172\.(?:1[6-9]|2\d|3[01])\.|\[::1\]|[\w-]{1,40}(?:[:/]|\s|$)|[\w.-]{1,60}\.(?:local|lan|internal|home|"
    r"home\.arpa)\b))|"
    rf"(?<![\w/.-])(?:[a-z0-9-]{{1,40}}\.){{1,4}}(?:{TLD})(?=$|[\s/:,;)\]\"'`!?]|\.(?:\s|$))|\bhxxps?\b|\[\.\]|"
    rf"\bdot com\b|\b\w{{1,30}} dot (?:com|net|org|io)\b|"
    r"\b(?!10\.|127\.|192\.168\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.|0\.|255\.|1\.1\.1\.1\b|8\.8\.8\.8\b|"
    r"9\.9\.9\.9\b)(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\b(?!/\d)|"
    r"\bcurl\b|\bwget\b|\bscp\b|\bnetcat\b|\bncat\b|\bsocat\b|\bpastebin\w*|\bgists?\b|\btelegram\b|"
    r"\bdiscord\b|\bslack\b|\bngrok\b|\bwebhooks?\b|\btransfer\.sh|\bdrop-?box\b|"
    r"\buploaded\b|\bupload(?:s|ing)? (?:\S{1,30} ){0,5}to\b|\bhochlad\w+|\bhochgelad\w+|\bsubir\b|"
    r"\btelevers\w+|\bcaricar\w+|\bexfil\w+|"
    r"\bphone[sd]? home|\bbeacon\w*|\boff-?site\b|\bthird[- ]part\w+|"
    r"\b(?:send|sends|sent|sending|post|posts|posted|forward|forwards|forwarded|ship|shipped|mail|mails|mailed|"
    r"e-?mail\w*|push|pushed|cop(?:y|ied|ies)|mirror\w*|transmit\w*|report|reports|"
    r"schick\w*|send\w*|gesendet|geschickt|ubermittel\w*|weiterleit\w*|envoy\w+|transmett\w+|envi\w+|reenvi\w+|"
    r"mand\w+|invi\w+|inoltr\w+|stuur\w*|verstuur\w*|wysl\w*|wysyl\w*)\b"
    rf"{GAP}(?:\b(?:to|at|an|zu|nach|vers|a|al|para|naar|do)\b\W{{0,3}}(?:(?:the|an?|our|its|den|die|das|der|"
    rf"le|la|l|el|il|lo|de|het|o)\b\W{{0,2}})?[\w-]{{0,30}} ?"
    r"(?:server|host|address|adresse|direcc\w+|endpoint|collector|mailbox|account|partner|vendor|support|"
    r"extern\w*|outside|remote|fremd\w*|serveur|servidor|\w{1,40}@\w)|@\w)|"
    r"\b(?:fetch|fetches|fetched|download|downloads|downloaded|pull|pulls|pulled|retriev\w+|load(?:s|ed)?|"
    r"herunterlad\w+|herunter(?:ge)?lad\w+|telecharg\w+|descarg\w+|baix\w+|scaric\w+|ophal\w+|pobier\w+)\b"
    rf"{GAP}\b(?:script\w*|binar\w+|from the (?:internet|web|vendor|mirror)|installer|update server|extern\w*|"
    rf"remote|skript\w*|internet|aus dem netz)\b|"
    r"отправ|загруз|скача|внешн|上传|上傳|发送到|发送至|下载|外部|アップロード|送信|ダウンロード|업로드|전송|"
    r"다운로드|외부|أرسل|إرسال|تحميل|ارسال|"
    r"آپلود|دانلود"
)
REMOVE = (
    r"\bvacuum\w*|"
    r"\b(?:delet\w+|remov(?:e|es|ed|ing|al)|rm|drop(?:s|ped|ping)?|purg\w+|wip\w+|eras\w+|truncat\w+|prun\w+|"
    r"shred\w*|overwrit\w+|destroy\w*|discard\w*|unlink\w*|"
    r"clear(?:s|ed|ing)?|empt(?:y|ied|ies|ying)|get(?:s|ting)? rid|clean(?:s|ed|ing)?(?: up| out)?|format(?:s|"
    r"ted|ting)?|thrown? away|forget|expir\w+|zap\w*|"
    r"losch\w*|gelosch\w*|entfern\w*|leer(?:en|t)|geleert|verwerf\w+|uberschreib\w+|supprim\w+|effac\w+|vider|"
    r"detrui\w+|borr\w+|elimin\w+|vaci\w+|apag\w+|exclu\w+|remov\w+|"
    r"cancell\w+|svuot\w+|verwijder\w*|wis(?:sen|t)|gewist|usun\w*|usuw\w*|skasow\w*|kasow\w*)\b|удал|стира|"
    r"очист|очища|删除|刪除|清空|清除|抹|削除|消去|삭제|지우|حذف|امسح|پاک"
)
DATA = (
    r"\b(?:data|databases?|db|logs?|logfiles?|journals?|backups?|snapshots?|volumes?|datasets?|files?|folders?|"
    r"director(?:y|ies)|tables?|records?|archives?|history|histories|"
    r"disks?|partitions?|buckets?|configs?|configurations?|mounts?|evidence|trail|traces?|events?|users?|"
    r"accounts?|mails?|photos?|keys?|repositor(?:y|ies)|images?|/(?:srv|var|etc|home|mnt|data|opt|usr|"
    r"root)\b\S{0,60}|"
    r"daten\w*|datenbank\w*|protokoll\w*|sicherung\w*|dateien|datei|ordner|verzeichnis\w*|verlauf|donnees|"
    r"journaux|sauvegardes?|fichiers?|dossiers?|datos|registros?|copias?|archivos?|carpetas?|dados|"
    r"arquivos?|pastas?|dati|registri|cartell\w+|gegevens|logboek\w*|bestanden|mappen|dane|dziennik\w*|kopi\w+|"
    r"plik\w*)\b|данн|журнал|логи|лог |резервн|бэкап|файл|数据|資料|日志|日誌|备份|備份|文件|"
    r"データ|ログ|バックアップ|ファイル|데이터|로그|백업|파일|بيانات|سجلات|نسخ|ملفات|داده|گزارش|پشتیبان"
)
NEEDLESS = (
    r"\b(?:no longer|not (?:needed|necessary|required|used|be (?:made|run|kept))|unnecessary|needless|"
    r"redundant|superfluous|disabl\w+|skip\w*|stop(?:s|ped|ping)?|paus\w+|suspend\w*|cancel\w*|turn(?:ed|"
    r"ing)? off|switch(?:ed|ing)? off|obsolete|"
    r"uberflussig|nicht (?:notig|mehr)|unnotig|deaktivier\w+|abgeschaltet|inutil\w*|plus necessaire|"
    r"desactiv\w+|innecesari\w+|desnecess\w+|non (?:serv\w+|necessar\w+)|overbodig|niet nodig|zbedn\w+)\b"
)
BACKUP = (
    r"\b(?:back-?ups?|restic|borg\w*|duplic\w+|rsnapshot|snapshots?|replicas?|dumps?|archiv\w+|copia\w*|copie\w*)\b"
)
REMOVAL = (
    r"\b(?:truncat|wip|purg|shred|eras)(?:e|ed|es|ing|s)\b|\b(?:volumes?|databases?|datasets?|"
    r"pools?)\b[^\n]{0,30}\brecreat\w+|"
    r"\brecreat\w+[^\n]{0,30}\b(?:volumes?|databases?|datasets?|pools?)\b|"
    rf"(?:{REMOVE}){GAP}(?:{DATA})|(?:{DATA}){GAP}(?:{REMOVE})|"
    rf"{BACKUP}{GAP}{NEEDLESS}|{NEEDLESS}{GAP}{BACKUP}|\bsicherung\w*{GAP}{NEEDLESS}|"
    rf"\bsauvegardes?\b{GAP}{NEEDLESS}|\brm -[rf]{{1,3}}\b|\bmkfs\w*|\bdd if=|"
    r"\bprune\b[^\n]{0,30}(?:--volumes|-a\b|-af\b)|\b(?:drop|truncate) (?:table|database|schema)|\bhistory -c|"
    r"\bvacuum-(?:time|size)|\bgit push (?:-f|--force)|\breset --hard|\bdown -v\b"
)
OFF = (
    r"\b(?:disabl\w+|deactivat\w+|turn(?:s|ed|ing)? (?:\w+ )?off|switch(?:es|ed|ing)? (?:\w+ )?off|off|"
    r"stop(?:s|ped|ping)?|bypass\w*|circumvent\w*|skip(?:s|ped|ping)?|remov\w+|loosen\w*|relax\w*|weaken\w*|"
    r"lower(?:ed)?|"
    r"open(?:s|ed)?|allow all|any(?:where| source)?|exempt\w*|exclud\w*|unprotected|without|insecure|ignor\w+|"
    r"no|not|accept any|suspend\w*|paus\w+|kill|mask(?:ed)?|flush\w*|ausschalt\w+|abschalt\w+|abgeschaltet|"
    r"ausgeschaltet|deaktivier\w*|"
    r"umgeh\w+|ohne|desactiv\w+|contourn\w+|sans|desactiv\w+|omit\w+|evit\w+|sin|desativ\w+|deslig\w+|sem|"
    r"disattiv\w+|disabilit\w+|salt\w+|senza|uitschakel\w+|uitgeschakeld|omzeil\w+|zonder|wylacz\w*|pomin\w*|"
    r"bez)\b|"
    r"отключ|выключ|обойти|обход|без |关闭|關閉|禁用|停用|绕过|跳过|無効|停止|回避|비활성|끄|우회|تعطيل|"
    r"إيقاف|غیرفعال|خاموش"
)
PROTECTION = (
    r"\b(?:firewalls?|ufw|iptables|nftables|fail2ban|crowdsec|selinux|apparmor|seccomp|antivirus|clamav|"
    r"malware|intrusion\w*|ids|waf|tls|ssl|https|certificate (?:check|valid|verif)\w*|verif\w+|validation|auth|"
    r"authenticat\w+|"
    r"log-?in (?:check|prompt)|signatures?|checksums?|sandbox\w*|audit\w*|auditd|monitor\w*|watchdogs?|"
    r"alert\w*|alarms?|encrypt\w+|guards?|guardrail\w*|rate[- ]limit\w*|cooldowns?|safeguards?|protect\w+|"
    r"hardening|policy|policies|"
    r"security|access control|acls?|isolation|quarantine|integrity|host[- ]?key|captcha|brandmauer|uberwachung|"
    r"schutz\w*|sicherheit\w*|verschlussel\w+|prufung\w*|authentifizier\w+|anmeldung|pare-feu|surveillance|"
    r"chiffrement|"
    r"authentification|securite|cortafuegos|vigilancia|cifrado|autenticac\w+|seguridad|monitoramento|"
    r"criptograf\w+|seguranca|sorveglianza|autenticazion\w+|sicurezza|crittograf\w+|beveilig\w+|versleutel\w+|"
    r"controle|zapor\w*|szyfrow\w*|uwierzyteln\w*)\b|"
    r"брандмауэр|файрвол|защит|шифров|аутентиф|проверк|мониторинг|防火墙|防火牆|加密|认证|验证|監控|监控|"
    r"安全|ファイアウォール|暗号|認証|監視|"
    r"検証|방화벽|암호화|인증|감시|보안|جدار|حماية|تشفير|مصادقة|فایروال|امنیت|رمزنگاری"
)
GUARDIANS = (
    r"\bdocker socket|\bpermissive\b|"
    r"\bvirenscanner\w*|\bantivir\w*|"
    r"\b(?:firewalls?|ufw|iptables|nftables|tls|ssl|quarantin\w*|virus\w*|antivirus|malware|fail2ban|"
    r"crowdsec|selinux|apparmor|"
    r"seccomp|(?<!let.s )encrypt\w*|pentest\w*|penetration|audit\w*|intrusion\w*|security|vulnerab\w*|"
    r"cve-\d+|honeypot|"
    r"genuine|root filesystem|"
    r"pare-feu|cortafuegos|brandmauer|verschlussel\w*|sicherheit\w*|securite|seguridad|seguranca|sicurezza|"
    r"beveilig\w*)\b|"
    r"брандмауэр|файрвол|безопасност|шифров|防火墙|防火牆|加密|安全|ファイアウォール|暗号|セキュリティ|"
    r"방화벽|암호화|보안|جدار الحماية|تشفير|أمن|فایروال|رمزنگاری"
)
PROTECTIONS = (
    rf"{GUARDIANS}|\bplain(?:text| http)? connection\w*|\b(?:leave|left|leaving) (?:it |them )?out\b|"
    rf"(?:{OFF}){GAP}(?:{PROTECTION})|(?:{PROTECTION}){GAP}(?:{OFF})|\bauth\w*\W{{0,3}}(?:none|off|false|"
    rf"disabled|no)\b|\b(?:accept|admit|allow|let)\w*\b[^\n]{{0,20}}\b(?:everybody|everyone|anybody|anyone|any|"
    rf"all)\b|--(?:no-verify|insecure|privileged|no-check-certificate|trusted-host|no-sandbox|allow-\w{{1,20}}|"
    rf"skip-\w{{1,20}})|\bchmod\b[^\n]{{0,20}}777|"
    r"\bPermitRootLogin|\bNOPASSWD|\bStrictHostKeyChecking|\bverify ?= ?false|\bprivileged\b|\bnet=host|"
    r"\bcap_sys\w*|\bdocker\.sock\b|\b0\.0\.0\.0\b|\bport(?:s|en)? \d{1,5}\b[^\n]{0,30}\b(?:internet|public\w*|"
    r"world|wan)\b|"
    r"\b(?:expos\w+|reachable|open)\b[^\n]{0,40}\b(?:internet|public\w*|world|wan)\b|\bset(?:e)?nforce 0|"
    r"\bsetuid|\bsuid\b"
)
ALWAYS = (
    r"\bevery (?:report|answer|summary|response|session|check)\b|"
    r"\b(?:always|every time|each time|whenever|at the (?:start|beginning|end) of (?:each|every|any|a)|"
    r"(?:before|after|in|on|at|with|during) (?:each|every|any) \w+|first thing|from now on|routinely|regularly|"
    r"as a first step|first (?:step|run|execute|call)|by default|henceforth|"
    r"must (?:first|always)|on (?:each|every) (?:run|start|boot|check|session|visit)|immer|jedes mal|jedesmal|"
    r"stets|bei jede\w+|vor jede\w+|nach jede\w+|ab sofort|kunftig|toujours|chaque fois|a chaque|avant chaque|"
    r"systematiquement|desormais|siempre|cada vez|"
    r"antes de cada|en cada|sempre|toda vez|a cada|antes de cada|ogni volta|prima di ogni|ad ogni|altijd|"
    r"elke keer|bij elke|voor elke|telkens|zawsze|za kazdym|przed kazd\w+)\b|всегда|каждый раз|перед кажд|"
    r"при кажд|总是|每次|始终|務必|必ず|毎回|常に|항상|매번|دائم|في كل مرة|همیشه|هر بار"
)
RUN = (
    r"\b(?:run|runs|running|execut\w+|call|invok\w+|launch\w*|appl(?:y|ied)|install\w*|source|eval|bash|sh|"
    r"python3?|script\w*|command\w*|one-?liner|pipe[ds]?|paste|append|prefix|add|includ\w+|begin|answer|"
    r"repl(?:y|ies)|use|set|choose|select|accept|"
    r"ausfuhr\w+|ausgefuhrt|aufruf\w*|skript\w*|befehl\w*|starte\w*|execut\w+|lanc\w+|commande\w*|ejecut\w+|"
    r"comando\w*|lanzar|execut\w+|rodar|esegu\w+|lanci\w+|uitvoer\w*|voer|opdracht\w*|uruchom\w*|polecen\w*|"
    r"wykon\w*)\b|"
    r"запус|выполн|команд|скрипт|运行|執行|执行|命令|脚本|実行|コマンド|スクリプト|실행|명령|스크립트|شغل|"
    r"تنفيذ|نفذ|اجرا|دستور"
)
ORDERS = (
    rf"(?:{ALWAYS}){GAP}(?:{RUN})|(?:{RUN}){GAP}(?:{ALWAYS})|\b(?:run|execute|source|bash|sh|"
    rf"python3?)\s\S{{0,60}}/\S{{1,60}}|\|\s?(?:ba|z)?sh\b|\b(?:in|into|to|through|with) (?:a |the )?(?:root |"
    rf"bash )?shell\b|\b(?:setup|install|update|repair|fix|maintenance|vendor\S*)[ -](?:script|command|"
    rf"one-?liner)s?\b|\bcron(?:tab|job)\w*\b[^\n]{{0,50}}\b(?:add|install|append|entry|line)\b|"
    r"\b(?:add|install|append|put)\b[^\n]{0,50}\b(?:crontab|cron|bashrc|profile|rc\.local|systemd timer)\b"
)

# What a note of an observation has no need to say: what may, should or would best be done.
NORMS = (
    r"\b(?:(?-i:may)|shall|should|ought|can be|is how|is needed|meant to|best|better|darf|durfen|soll(?:te|ten|"
    r"en)?|am besten|conviene|hay que|"
    r"se puede[n]?|pued[eo]n? ser|debe[n]? ser|peut etre|peuvent|il faut|doivent|pode[m]? ser|deve[m]? ser|"
    r"vanno|va fatto|possono|mag|mogen|moeten|"
    r"mozna|nalezy|powinn\w+)\b|можно|нужно|следует|может быть|可以|应该|應該|必须|てよい|べき|해도 된다|"
    r"해야 한다|يمكن|يجب|باید|می توان"
)

_ANY_CASE = re2.Options()
_ANY_CASE.case_sensitive = False

# Name, pattern, and RE2's form of it, which says no a hundred times as fast.
TOPICS = tuple(
    (name, re.compile(pattern, re.IGNORECASE), re2.compile(without_lookaround(pattern), _ANY_CASE))
    for name, pattern in (
        ("the agent", AGENT),
        ("rights", RIGHTS),
        ("reports", REPORTS),
        ("credentials", CREDENTIALS),
        ("foreign hosts", HOSTS),
        ("removal", REMOVAL),
        ("protection", PROTECTIONS),
        ("standing orders", f"{ORDERS}|{NORMS}"),
    )
)


@lru_cache(maxsize=8)  # one statement is asked about several times
def topics(text: str) -> tuple[str, ...]:
    """Return the topics of a text as it was written, in a fixed order."""
    raw = text[:LONGEST]
    read = list(dict.fromkeys(readings(raw, fold(raw))))
    plain = [reading for reading in read if reading.isascii() and reading.isprintable()]
    others = [reading for reading in read if reading not in plain]  # RE2 reads these in its own way
    joined = "\n".join(plain).encode()
    found = tuple(
        name
        for name, pattern, first in TOPICS
        if any(pattern.search(reading) for reading in (read if first.search(joined) else others))
    )
    return found if len(text) <= LONGEST else (*found, "a long text")
