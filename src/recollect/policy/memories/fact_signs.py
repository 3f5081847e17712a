"""Signs in a message, of all languages, that tell statements from questions, requests and pasted texts."""

from __future__ import annotations

import re

FENCE = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
QUOTED = re.compile(r"^\s{0,3}>.*$", re.MULTILINE)
SENTENCE = re.compile(
    r"(?<=[.!?…])[\"'”’»)]*\s+(?=\S)|(?<=[。！？])|(?<=[!?])(?=[^\W\d_])|;\s+|\n+|\s[–—]\s|\s:[)D(]\s?"
)
ABBREVIATION = re.compile(
    r"\b(?:dr|mr|mrs|ms|st|nr|no|vs|e\.g|i\.e|z\.b|prof|sr|sra|hr|fr|dott|bzw|ca|approx)\.$", re.I
)
OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|oh|ah|wow|sorry|yeah|yes|yep|no|nah|sure|well|so(?! far)|and|but|also|btw|fyi|hm+|ooh|right"
    r"|true|cool|great|perfect"
    r"|(?:thanks|thx|thank you)(?! for)|good|nice|hi|hey|hello|morning|actually|anyway|by the way"
    r"|also|ja|nein|gut|klar|ach|und|aber|danke(?! für)|hallo|übrigens|eben|moin"
    r"|entschuldigung|pardon|désolée?|perdón|desculpe?|scusa"
    r"|oui|non|ah|et|mais|merci(?! pour)|bonjour|alors|bref|bon|d'accord"
    r"|sí|vale|pues|y|pero|gracias(?! por)|hola|bueno|mmm|bien|exacto|perfecto"
    r"|sim|não|pois|e|mas|obrigad[oa](?! p)|boa|olá|oi|fixe"
    r"|sì|ma|grazie(?! per)|ciao|beh|dai|giusto|bene)(?:(?:[ ,.!:–]|-(?=\s))+|$))+",
    re.IGNORECASE,
)
CODE = re.compile(
    r"\w\(\)|[;{}]\s*$|^\s*(?:\$ |>>> |def |class |import |SELECT )|\w(?:Error|Exception):|=>|==|::|&&|__|\\_"
)
# Exercises state much that is nobody's: "f(x) = x^2", "dy/dt = -2".
FORMULA = re.compile(r"[²³√π∫∑≤≥]|\\[(\[a-z]|\b[a-z]['’]*\(-?\w\)|\w\^[({\w]|\bd\w/d\w\b|\w ?= ?-?[\w(]")
BULLET = re.compile(r"^(?:[-+*•·]\s+|\*\*|#+\s+|\(?\d{1,2}[.)]\s+)+")
CITED = re.compile(r"^[\"“”„«‘']|^\w+\*{0,2}: ")
CLAUSE = re.compile(r",\s+|\s+[-–]\s+|\s+(?=\()")
NUMBER = re.compile(r"\d")
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
UNSPACED_QUESTION = re.compile(r"(?:吗|ですか|ますか|でしょうか)[。.]?\s*$")
NAME = re.compile(r"(?<=[\w,)] )(?!I['’])[A-ZÀ-Þ][\w.'’-]+")
WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
# "Yes, but not anymore" confirms nothing.
RESERVATION = re.compile(
    r"\b(?:but|except|no longer|not|never|used to|aber|nicht|kein\w*|mais|pas|jamais|pero|ya no|nunca|mas|não|nem"
    r"|però|non)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
# Asks whether the statement before it is true, so that is a question as well.
TAG = re.compile(
    r"^\W*(?:(?:is|are|am|was|were|do|does|did|has|have|had|can|will|would)(?:n['’]t)? (?:i|it|he|she|we|they"
    r"|that)(?: not)?"
    r"|isn['’]t that (?:so|right|true)|innit|right|correct|true|yes|no|or|or not|oder(?: nicht)?|nicht wahr"
    r"|stimmt['’]?s|richtig|gell"
    r"|n['’]est-ce pas|non|pas vrai|c['’]est ça|verdad|cierto|no es así|né|não é|certo|verdade|vero|giusto"
    r"|no è vero)\W*$",
    re.IGNORECASE,
)
# Ends a question that has no question mark: "I live in Oslo, right", "my wife is Anna isn't she". "Yes" affirms.
TAG_END = re.compile(
    rf",(?!\W*(?:yes|true|richtig)\W*$){TAG.pattern.removeprefix('^')}"
    r"|\b(?:is|are|was|were|do|does|did|has|have|ca|wo|would)n['’]?t (?:i|it|he|she|we|they|that|you)\W*$"
    r"|\b(?:innit|né|n['’]est-ce pas)\W*$",
    re.IGNORECASE,
)
UNWANTED = re.compile(
    r"^(?:please |bitte |(?:can|could) you )?(?:forget (?:that|about|what|my|i\b|the fact)|delete (?:that|what) i"
    r"|(?:do not|don't) (?:remember|store|save|keep|note|memori[sz]e|record)|vergiss|(?:merke?"
    r"|speichere?) (?:dir )?(?:\w+ )?nicht"
    r"|oublie|ne (?:retiens|mémorise|note|garde) pas|olvida|no (?:recuerdes|guardes|anotes)|esque[cç]|não (?:lembr"
    r"|guard|anot)"
    r"|dimentica|non (?:ricordare|salvare|annotare))",
)
# Up to a colon, or to a word that points at what follows, without a word for the speaker: "Translate this: …".
TASK = re.compile(
    r"^(?:(?!\b(?:i|we|my|ich|wir|je|yo|eu|io)\b)[^:])*?\b(?:(?:translate|proofread|rewrite|rephrase|paraphrase"
    r"|summari[sz]e"
    r"|übersetz\w*|korrigier\w*|formulier\w*|tradui\w*|corrige\w*|reformule\w*|résume\w*|traduce|traduza|traduz"
    r"|resum[ae]|corrija"
    r"|traduci|correggi|riassumi)\b[^:]*(?::|\b(?:this|these|following|below|folgende\w*|diese\w*|suivant\w*"
    r"|siguiente\w*|seguinte\w*"
    r"|seguente)\b)|(?:correct|improve|polish|shorten|edit|review|check|here is|here's|this is|hier ist|voici"
    r"|aquí está|ecco)\b"
    r"[^:]*\b(?:text|(?<!my )e-?mail|(?<!my )mail|letter|essay|paragraph|sentence|message|article|poem|story"
    r"|novel|excerpt|transcript|draft|grammar|brief|aufsatz|lettre|texte|texto|carta|testo|lettera)\b[^:]*:)",
)
# Introduces somebody else's words, to the end of the message: "Tom wrote: My new number is …".
CITING = re.compile(
    r"^(?!(?:i|we|ich|wir|je|nous|yo|eu|io)\b)[^:]{1,120}\b(?:says?|said|writes?|wrote|texted|e-?mailed|messaged|repl(?:ies|ied)"
    r"|told (?:me|us)|answered|posted|bio|sagte?|schr(?:ei|ie)bt?|meinte|écrit|dit|répond\w*|escrib(?:e|ió)|dice|dijo"
    r"|escreve\w*|diss?e|diz|scri(?:ve|tto)|detto)\b[^:]{0,40}:(?!\S)"
)
# Where a statement turns into a question or a request: "I moved to Oslo, what should I see there".
DEMAND = re.compile(
    r",\s+(?:(?:and|so|but|und|also|et|mais|y|e) )?(?:what|why|how(?! (?:i|we|he|she|they|it)\b)"
    r"|(?:can|could|would|will) you|(?:can|could|should|do|does|is|are) (?:i|we|there|you)|please"
    r"|(?:write|give|tell|show|help) me"
    r"|was (?:kann|soll|ist|sind|muss)|wie (?:kann|soll|geht|mache)|warum|kannst du|können sie|bitte"
    r"|que (?:puis|dois|faire)|comment (?:puis|dois|faire)|pourquoi|peux-tu|tu peux|pouvez-vous|vous pouvez"
    r"|qué|cómo|por qué|puedes|podrías|o que|como (?:posso|devo|faço)|por que|você pode|podes"
    r"|cosa|che cosa|come (?:posso|devo|faccio)|perché non|puoi|potresti)\b.*",
    re.IGNORECASE | re.DOTALL,
)
CONFIRMATION = re.compile(
    r"^(?:yes|yep|yeah|correct|exactly|right|that's right|indeed|ja|genau|stimmt|richtig|oui|exact(?:ement)?"
    r"|tout à fait|sí|exacto|correcto|así es|sim|exato|certo|isso mesmo|sì|esatto|giusto)\b(?!.{80})",
    re.IGNORECASE,
)
