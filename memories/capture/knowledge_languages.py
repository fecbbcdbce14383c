"""What addresses an agent in other languages than English: short orders and second persons. Pure.

For the rules of the taxonomy `knowledge`. A few words of each language: an order in other words is not found here.
"""

from __future__ import annotations

from memories.capture.text import any_of, words

_AGENT = words("agente?[ns]? as+istente?[ns]? assistants? ki ia")
_MUST = words("""
    muss müssen soll\\w{0,3} darf dürfen doi(?:t|vent) peu(?:t|vent) deben? puede[n]? devem? pode[m]? deve devono
    può possono moet\\w{0,2} mag mogen musi powin\\w+ может
""")
_RUN_GERMAN = words("""
    ausführ\\w* aufruf\\w* sende\\w* schick\\w* lade\\w* öffne\\w* starte\\w* wiederhol\\w* lösch\\w*
""")
_ORDER_IBERIAN = words("""
    ignora ignore olvida ejecuta ejecute repite envía descarga borra execute repita envie baixe apague
""")
_NOW_IBERIAN = words("siempre sempre todo toda todas cada las los el la este esta o a os as antes")

ADDRESSES_ELSEWHERE = any_of(
    rf"\b{_AGENT}\b.{{0,20}}?\b{_MUST}\b",
    # German
    r"\bdu (?:musst|sollst|darfst|kannst|bist|wirst|hast)\b|\b(?:musst|sollst) du\b|\bdein(?:e[nrms]?)?\b|\b(?:dich|"
    r"dir)\b",
    r"(?-i:(?<![.!?] )(?<!^)\bSie (?:müssen|sollen|sollten|dürfen|können)|\b(?:müssen|sollen|dürfen) Sie\b)",
    r"\b(?:ignorier|vergiss|vergess|missacht|befolg|wiederhol)\w*\b|\baus(?:zu)?führen\b|\bführe?n?\b.{1,80}\baus\b",
    rf"\b(?:immer|stets|jedes mal|vor jeder|bei jeder|nach jeder)\b.{{0,80}}\b{_RUN_GERMAN}",
    r"\bohne (?:rückfrage|nachfrage|bestätigung|freigabe|zu fragen)\b",
    # French
    r"\b(?:tu|vous) (?:dois|devez|peux|pouvez|es|êtes|devrais|devriez)\b|\b(?:votre|vos|ton|ta|tes) (?!\d)\w",
    r"\b(?:ignore[zr]|ignore (?:les|la|le|tou\w+|ces?|cette)|oublie[zr]?|exécute[zr]?|répète[zr]?|envoie|envoyez|"
    r"télécharge[zr]?|supprime[zr]?)\b",
    r"\bsans (?:demander|confirmation|validation|accord)\b",
    # Spanish and Portuguese
    r"\b(?:debes|deberías|tienes que|debe usted|usted debe|você|vocês|deves)\b|\bsu (?:asistente|tarea)\b",
    rf"\b{_ORDER_IBERIAN}d?\b(?=.{{0,60}}\b{_NOW_IBERIAN}\b)",
    r"\b(?:siempre|sempre)\b.{0,30}\b(?:ejecut|execut|envi|env[ií]a|descarg|baix|repit|repet|borr|apag|ignor)\w*",
    r"\bsin (?:preguntar|confirmar|confirmación|aprobación|permiso)\b",
    r"\bsem (?:perguntar|confirmar|confirmação|aprovação)\b",
    # Italian
    r"\b(?:devi|dovete|dovresti)\b|\bsenza (?:chiedere|conferma|approvazione)\b",
    r"\b(?:esegui|eseguite|ignora(?:te)?|ripeti|invia|scarica|cancella) "
    r"(?:sempre|tutt|il|la|le|i|gli|ogni|questo|questa)\b",
    # Dutch
    r"\b(?:je|u|jij) (?:moet|mag|zult|bent)\b|\bjouw\b|\bnegeer\b|\bvergeet\b|\bherhaal\b|\bvoer\b.{1,80}\buit\b",
    r"\bzonder (?:te vragen|bevestiging|toestemming)\b",
    # Polish
    r"\b(?:musisz|powinieneś|możesz|masz)\b|\bbez (?:pytania|potwierdzenia|zgody)\b",
    r"\b(?:zignoruj|ignoruj|zapomnij|uruchom|wykonaj|powtórz|wyślij|pobierz|usuń)\b",
    # Turkish, Swedish
    r"\b(?:yoksay|görmezden gel|çalıştır|unut|tekrarla)\w*|\bdu (?:måste|ska|bör|får)\b|\b(?:ignorera|kör|upprepa)\b",
    # Russian
    r"\b(?:ты|вы|тебе|вам|твои?|ваши?) |\b(?:за)?пусти(?:те)?\b|\bзапускай(?:те)?\b|\bвыполн(?:и|яй|ите|яйте)\b",
    r"\b(?:про)?игнорируй(?:те)?\b|\bзабудь(?:те)?\b|\bповторяй(?:те)?\b|\bотправ(?:ь|ляй|ьте)(?:те)?\b|"
    r"\bбез подтвержд",
    # Chinese
    r"你|您|请(?:执行|运行|始终|务必|忽略|发送|下载)|忽略|无视",
    r"(?:总是|始终|务必|每次).{0,20}(?:执行|运行|发送|下载|重复|忽略)",
    # Japanese
    r"あなた|(?:して|送って)(?:ください|下さい)|しなさい|無視|(?:必ず|常に|毎回).{0,30}(?:実行|送信|繰り返)",
    # Korean
    r"당신|(?:하|실행하|보내)(?:십시오|세요)|무시하|(?:항상|반드시|매번).{0,30}(?:실행|전송|반복)",
    # Arabic, Persian
    r"يجب عليك|(?:^| )أنت |شغّ?ل |نفّ?ذ |تجاهل|دائما?ً? .{0,20}(?:شغ|نف|أرسل)",
    r"شما باید|نادیده بگیر|همیشه .{0,30}(?:اجرا|ارسال)",
    # Hindi
    r"आपको|हमेशा .{0,30}चला",
)
