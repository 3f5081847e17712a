"""Cues of lasting facts, promises, requests and passing states, for reading facts out of conversations.

A pattern is matched against one sentence in lower case with straight apostrophes. None has an unbounded repetition of
more than single words, so matching takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class FactCues:
    """Cues of one language, as sources of patterns."""

    self_words: str  # the speaker, alone or as part of "we"
    others: str  # somebody else who was named before
    lasting: str  # states, habits, preferences and properties that stay
    promise: str
    subject: str  # starts of statements about something definite
    predicate: str  # auxiliary verbs: a text without a verb states nothing
    passing: str  # states that are over tomorrow
    hedge: str  # wishes, guesses and needs of the moment
    asking: str  # starts of questions, which people often write without a question mark
    request: str  # starts of requests
    standing: str  # what turns a request into a lasting one
    trivial: str  # announcements of the moment, which are no promises
    unreal: str  # starts of conditions
    link: str  # conjunction and subject that start another clause
    pointing: str  # starts with a word for what was said before, so it cannot be understood alone

    @cached_property
    def patterns(self) -> Mapping[str, re.Pattern[str]]:
        """The compiled patterns, by the names of the fields; those of starts match at the start only."""
        starts = {"subject", "asking", "request", "unreal", "pointing"}
        sources = {name: source for name, source in vars(self).items() if isinstance(source, str)}
        found = {name: re.compile(rf"{'^' if name in starts else ''}(?:{source})") for name, source in sources.items()}
        # Matches the space before a clause, in any case, to split a sentence at it.
        return found | {"link": re.compile(rf",?\s+(?={self.link})", re.IGNORECASE)}


ENGLISH = FactCues(
    self_words=r"\b(?:i|i'm|i've|i'll|i'd|im|ive|my|mine|me|we|we're|we've|we'll|our|ours|us)\b",
    others=r"\b(?:he|she|they|his|her|hers|their|theirs|he's|she's|they're|they've|they'll)\b",
    lasting=(
        r"\b(?:prefers?|preferred|hates?|dislikes?|avoids?|allergic|intoleran(?:t|ce)|allergy|vegan|vegetarian|celiac"
        r"|coeliac|diabetic|asthma\w*|always|never|usually|every (?:\w+ )?(?:day|week|month|morning|evening|night|year"
        r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday|quarter|summer|winter)|on (?:mon|tues|wednes|thurs"
        r"|fri|satur|sun)days|(?:mon|tues|wednes|thurs|fri|satur|sun)days|mornings|evenings|nights|only|owns?|lives?"
        r"|lived|works? (?:at|as|for|in|from|nights|on)|uses?|speaks?|studies|favou?rite|married|divorced|engaged|born"
        r"|grew up|since (?:last|the|my|our|\d+|\w+day|january|february|march|april|may|june|july|august|september"
        r"|october|november|december)|for \w+ years|years|no longer|any ?more|from now on|going forward|birthday"
        r"|(?:name|named|called)(?= )|based in|collects?|volunteers?|maintain(?:s|ing)?|manages?|owner|signs|approves?"
        r"|responsible|in charge|blind|deaf|wheelchair|pregnant|retired|impossible|rule|until|budget|policy|contract"
        r"|deadline|standard|at most|max(?:imum)?|minimum|moved|moving|opened|diagnos\w+|appointment|booked|expires?"
        r"|decided|agreed|promised|insists?|doesn't (?:eat|drink|like|want)|don't (?:eat|drink|like|watch|want|do|use)"
        r"|can't (?:have|eat|drink|stand)|won't (?:eat|drink)|(?:i|we|he|she|they) (?:really |absolutely )?(?:love"
        r"|like|enjoy)s? (?!it\b|the\b|that\b|this\b|your\b|to (?:hear|know|see))|(?:on|parental|sick) leave"
        r"|call me (?!tomorrow|later|back|when|at|on|if|asap)|suffers?|(?:i|we|he|she|they) ha(?:ve|s) (?:a|an|two"
        r"|three|four|no|\d+) (?!question|problem|issue|headache|idea|doubt|request|lot|ton|look|feeling|quick|few"
        r"|little|bit|chance|good|great|nice))\b"
    ),
    promise=(
        r"\b(?:i'll|we'll|i will|we will|i'm going to|we're going to|will (?:receive|get|bring|call|send|arrive|come"
        r"|charge|deliver)|i promise\w*|(?:i|we) (?:told|promised|owe)|we'd|let me send)\b"
    ),
    subject=(
        r"(?:the|all|both|every|each) \w+|(?:my|our) (?:\w+ ){0,2}(?:brother|sister|mother|father|mom|mum|dad|son"
        r"|daughter|husband|wife|partner|boss|manager|team|company|client|customer|dog|cat)s?\b"
    ),
    predicate=(
        r"\b(?:is|are|was|were|has|have|had|isn't|aren't|\w+'s|\w+'re|\w+'ve|will|won't|must|can't|cannot|do|does"
        r"|don't|doesn't|means?|go|goes|want|wants|need|needs|take|takes|run|runs)\b"
    ),
    passing=(
        r"\b(?:right now|at the moment|just now|now|today|tonight|this (?:morning|afternoon|evening)|just|currently"
        r"|again|so far|tired|wiped|sleepy|hungry|stuck in|on (?:my|the) way|in (?:the|a) (?:taxi|train|bus|car|queue)"
        r"|can't wait|back from|third time|waiting)\b"
    ),
    hedge=(
        r"\b(?:want to|wanna|would like|i'd like|i'd love|would love|need (?:to|a|an|some|help|ideas?)|i think|i guess"
        r"|i suppose|maybe|perhaps|not sure|i wonder|feel like|i hope|wish|looking for|thinking (?:of|about)|might"
        r"|probably|i knew|i mean|sounds?|seems?|looks?|could|should|i see|i understand|i checked|questions?|ideas?"
        r"|suggestions?|i'm (?:sure|trying to|hoping|worried|considering)|for (?:example|instance)|if i|been trying to"
        r"|so (?:that )?(?:i|we) can|notic(?:ed|ing)|wonder(?:ed|ing)|i've heard|speaking of|never (?:saw|thought|know"
        r"|knew|heard)|planning (?:to|on)|never real\w+|didn't (?:know|realize)|interested in|i believe"
        r"|looking forward|i'm (?:so |really )?(?:glad|happy|excited)|as someone|give \w+ a try|been meaning)\b"
    ),
    asking=(
        r"(?:what|where|why|how|who|whom|whose|which)\b(?! (?:i|we|he|she|they) (?:like|love|hate|prefer)\b)|what's"
        r"|when (?:is|are|was|were|do|does|did|will|can|should)\b|(?:do|does|did|is|are|am|was|were|can|could|will"
        r"|would|should|has|have|had|isn't|don't|doesn't|didn't) (?:i|you|we|he|she|they|it|my|our|your|the|there|this"
        r"|that|any\w*)\b|any (?:idea|news|update|chance)\w*\b"
    ),
    request=(
        r"(?:please|pls|can|could|would|will) you\b|(?:please |pls |just |kindly )?(?:give|show|tell|make|send|write"
        r"|explain|find|recommend|suggest|help|add|remove|check|look|try|let|go|use|put|open|close|read|list|create"
        r"|draft|prep\w*|summari[sz]e|translate|fix|run|wait|come|stop|start|set|change|update|book|order|remind"
        r"|call(?! me [a-z]+$)|compare|think|imagine|do|keep|take|get|note|patch|vary|avoid|begin|provide|describe|be"
        r"|have a|enjoy|consider|ask)\b(?! (?:is|was|are)\b)|please\b|pls\b"
    ),
    standing=r"\b(?:from now on|always|never|no more|going forward|by default|every time|remember that|don't ever)\b",
    trivial=(
        r"\b(?:(?:i'll|we'll|i will|i'm going to|you'll) (?:\w+ly |also |just |then |have to )?(?:make sure|check|see"
        r"|try|look|think|let you know|be (?:back|right|there|fine)|wait|do (?:that|it)|have a look|take a look|keep"
        r"|describe|remember|only|add|use|write|stick|go)|will (?:do|be)|talk|bye)\b"
    ),
    unreal=r"(?:if|unless|suppose|whether|in case|imagine|assuming|given)\b",
    link=(
        r"(?:and|but|so|plus|because) (?=(?:i|i'm|i've|i'll|we|we're|we've|my|our|who|what|when|where|how|any|can"
        r"|could|honestly|please|she|he|they)\b)"
    ),
    pointing=r"(?:it|it's|that|that's|this|this is|those|these|there's|one)\b",
)

GERMAN = FactCues(
    self_words=r"\b(?:ich|mein\w{0,2}|mir|mich|wir|uns|unser\w{0,2}|bei uns)\b",
    others=r"\b(?:er|sie|sein\w{0,2}|ihr\w{0,2}|herr|frau|die (?=haben|wollen))\b",
    lasting=(
        r"\b(?:immer|nie|niemals|jede[nrsm]? (?:tag|woche|monat|morgen|abend|jahr)|\w+tags\b|lieber|bevorzug\w+|mag"
        r"|mögen|hasse|hasst|liebe|liebt|allergi\w+|unverträglich\w*|vegan\w*|vegetari\w+|wohn\w+|lebe|lebt|leben"
        r"|arbeite\w*|heiß\w+|seit (?:dem|der|drei|zwei|vier|fünf|\d+|letzt\w+|jahren|januar|anfang)|geboren"
        r"|verheiratet|geschieden|nicht mehr|gibt's nicht mehr|kein\w{0,2} \w+ mehr|ab jetzt|ab sofort|künftig"
        r"|in zukunft|auf jeden fall|nehme|nimmt|geburtstag|kundennummer|handynummer|telefonnummer|adresse|hausarzt"
        r"|kaum|grundsätzlich|übrigens|nur|bis (?:ende|zum|20\d\d)|umgezogen|ziehen|gehört|zuständig|vertrag|budget"
        r"|termin|entschieden|beschlossen|vereinbart|versprochen|leide\w*|(?:habe?|haben|hat) (?:einen?|zwei|drei|vier"
        r"|\d+) (?!frage|problem|idee|termin))\b"
    ),
    promise=r"\b(?:ruf\w?|schick\w?|melde|kümmere|mache|mach|bringe|sende|werde|werden|besorge|erledige)\b",
    subject=(
        r"(?:der|die|das|alle|herr|frau) \w+|(?:mein|meine|unser|unsere) (?:bruder|schwester|mutter|vater|mutti|oma"
        r"|opa|sohn|tochter|mann|frau|chef|chefin|team|firma|kunde|kundin|hund|katze)\b"
    ),
    predicate=(
        r"\b(?:ist|sind|war|waren|hat|haben|habe|hab|bin|wird|werden|will|wollen|kann|können|muss|müssen|darf|gibt"
        r"|geht|kommt|fahren|liegt)\b"
    ),
    passing=(
        r"\b(?:grad|gerade|heute|jetzt gerade|im moment|momentan|eben|soeben|gestern|müde|unterwegs|dreimal|schon"
        r"|nochmal versucht)\b"
    ),
    hedge=(
        r"\b(?:möchte|würde|hätte gern\w*|brauch\w*|suche|vielleicht|glaube|denke|weiß nicht|wüsste|könnte|sollte"
        r"|wollte|egal|schaff|mach ich|komm nicht|fragen?|wusste|interessier\w+|freue|freut|froh|hoffe|hoffen"
        r"|gespannt)\b"
    ),
    asking=(
        r"(?:was|wer|wen|wem|wie|wo|wann|warum|wieso|weshalb|welche\w?|wohin|woher|wozu|seit wann)\b|(?:ist|sind|war"
        r"|hast|hat|haben|kannst|kann|können|weißt|wissen|soll|sollen|muss|darf|dürfen|gibt|wird|willst|magst|bist"
        r"|geht) (?:ich|du|er|sie|es|wir|ihr|mein\w*|dein\w*|ihre?|der|die|das|man)\b"
    ),
    request=(
        r"(?:kannst|könntest|können|könnten|würdest) |(?:bitte )?(?:zeig|sag|mach|schick|gib|schreib|erklär|hilf|nimm"
        r"|nehmen|schau|such|finde|erzähl|prüf|öffne|starte|stopp|lass|vergiss|probier|bitte)\w{0,3}\b"
    ),
    standing=r"\b(?:immer|nie|ab jetzt|ab sofort|künftig|in zukunft|nicht mehr|keine? \w+ mehr)\b",
    trivial=r"\b(?:schau\w*|guck\w*|probier\w*|mach ich|nehme ich auf|versuch\w*|überleg\w*|schreib\w*)\b",
    unreal=r"(?:wenn|falls|ob|angenommen|sollte)\b",
    link=(
        r"(?:und|aber|also|denn|weil|nur) (?=(?:ich|wir|mein\w*|unser\w*|bitte|wie|was|wer|wann|wo|kannst|die|der"
        r"|das)\b)"
    ),
    pointing=r"(?:das|dies\w*|es|da)\b(?! \w+ (?:liegt|gehört))",
)

FRENCH = FactCues(
    self_words=r"\b(?:je|j'\w+|mon|ma|mes|moi|m'\w+|nous|notre|nos|on|chez nous)\b",
    others=r"\b(?:il|elle|ils|elles|son|sa|ses|leur|leurs)\b",
    lasting=(
        r"(?:\b(?:toujours|jamais|chaque (?:jour|semaine|mois|matin|soir|année)|tous les \w+|préfèr\w+|préféré\w*"
        r"|déteste\w*|horreur|aime\w*|adore\w*|allergi\w+|intoléran\w+|végétari\w+|végan\w*|habit\w+|vis|vit|vivons"
        r"|travaille\w*|depuis|né[es]?|marié\w*|divorcé\w*|ne \w+ (?:plus|jamais|pas)|n'\w+ (?:plus|jamais|pas)"
        r"|désormais|dorénavant|à partir de|déménagé\w*|devenu\w*|anniversaire|adresse|numéro|m'appelle|s'appelle"
        r"|décidé|convenu|promis|rendez-vous|réservé|le (?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)"
        r"|personne ne|budget|contrat|enceinte|retraite|souffr\w+|responsable|(?:j'ai|on a|nous avons|il a"
        r"|elle a) (?:un|une|deux|trois|\d+) (?!question|souci|problème|idée))\b)"
    ),
    promise=(
        r"\b(?:(?:je|on|nous) (?:t'|vous |te |leur |lui |l'|les |le |la )?(?:envoi\w+|rappell\w+|appell\w+|fer\w+"
        r"|occup\w+|prépar\w+|\w+erai|\w+rons)|je m'(?:en )?(?:occupe|engage)|va vous|vais (?:envoyer|appeler|rappeler"
        r"|faire))\b"
    ),
    subject=(
        r"(?:le|la|les|l'|tous les|toutes les) ?\w+|(?:mon|ma|mes|notre|nos) (?:frère|sœur|soeur|mère|père|fils|fille"
        r"|mari|femme|chef|équipe|entreprise|client|cliente|chien|chat)s?\b"
    ),
    predicate=(
        r"\b(?:est|sont|était|a|ont|ai|avons|suis|sommes|avez|va|vont|fait|faut|peut|peuvent|veut|veulent|doit|c'est"
        r"|n'est|n'a|j'ai|j'\w+)\b"
    ),
    passing=(
        r"\b(?:maintenant|aujourd'hui|en ce moment|ce matin|ce soir|là|à l'instant|fatigué\w*|hier|viens de|encore)\b"
    ),
    hedge=(
        r"\b(?:voudrais|aimerais|besoin|cherch\w+|peut-être|pense|crois|sais pas|manque|espère|faudrait|pourrait"
        r"|regarde|question|souci|problème|penses|savais|intéress\w+|hâte|content\w*|heureux|heureuse)\b"
    ),
    asking=(
        r"(?:qui|quoi|où|comment|pourquoi|combien|quel\w*|est-ce|qu'est|c'est (?:quoi|qui|quand|où)|tu (?:sais|connais"
        r"|peux|te souviens|as)|vous (?:savez|connaissez|pouvez)|quand (?:est|a|ont|arrive\w*|part\w*))\b"
    ),
    request=(
        r"(?:tu peux|pouvez|peux|pourrais|pourriez|dis|donne|montre|envoie|explique|aide|fais|écris|trouve|regarde"
        r"|vérifi\w+|dites|essa\w+|mets|s'il)\b"
    ),
    standing=r"\b(?:toujours|jamais|désormais|dorénavant|à partir de maintenant|plus de|plus jamais)\b",
    trivial=r"\b(?:regarde|vais voir|essaie|vérifie|réfléchi\w*|propose\w*)\b",
    unreal=r"(?:si|s'il|au cas où|supposons)\b",
    link=(
        r"(?:et|mais|donc|alors|car) (?=(?:je|j'\w+|on|nous|mon|ma|mes|tu|vous|qui|que|quand|comment|combien|il|le|la"
        r"|t'\w+)\b)"
    ),
    pointing=r"(?:c'est|c'était|ça|cela|ce sont)\b",
)

SPANISH = FactCues(
    self_words=(
        r"(?:\b(?:yo|mi|mis|mío|mía|me|nos|nosotr[oa]s|nuestr[oa]s?|conmigo|soy|tengo|estoy|vivo|trabajo|uso|prefiero"
        r"|odio|tomo|compré|tuve|nací|voy|puedo|he|\w{3,}[aei]mos)\b)"
    ),
    others=r"\b(?:él|ella|ellos|ellas|su|sus|le|les|se)\b",
    lasting=(
        r"\b(?:siempre|nunca|jamás|cada (?:día|semana|mes|mañana|año)|todos los \w+|prefier\w+|preferid\w+|odi\w+"
        r"|encanta\w*|gusta\w*|alérgic\w+|alergia|intoleran\w+|vegan\w+|vegetarian\w+|viv\w+|trabaj[oa]\w*"
        r"|desde (?!luego)|nací|nacido|casad\w+|divorciad\w+|ya no|a partir de|de ahora en adelante|llamo|se llama"
        r"|cumple\w*|cumpleaños|dirección|usamos|uso|usan|nada de|colecciona\w*|tom[oa]\b|compr[éó]|quedado en"
        r"|decidid\w+|decidimos|acordad\w+|prometí\w*|presupuesto|contrato|los (?:lunes|martes|miércoles|jueves"
        r"|viernes|sábados|domingos)|jubilad\w+|embarazada|responsable|sufr\w+|solo|sólo|(?:tengo|tenemos|tiene) (?:un"
        r"|una|dos|tres|\d+) (?!pregunta|problema|duda|idea))\b"
    ),
    promise=(
        r"\b(?:voy a|vamos a|\w{3,}aré|\w{3,}eré|\w{3,}iré|\w{3,}remos|me encargo|te (?:mando|envío|llamo)|le (?:mando"
        r"|envío|llamo)|prometo|prometí|yo escribo|he quedado)\b"
    ),
    subject=(
        r"(?:el|la|los|las|todos los|todas las) \w+|(?:mi|mis|nuestr[oa]) (?:herman[oa]|madre|padre|hij[oa]|marido"
        r"|esposa|mujer|jef[ea]|equipo|empresa|cliente|perr[oa]|gat[oa])s?\b"
    ),
    predicate=r"\b(?:es|son|era|está|están|ha|han|hay|tiene|tienen|fue|va|van|puede|pueden|quiere|quieren|debe|hace)\b",
    passing=(
        r"\b(?:ahora mismo|hoy|ahorita|acabo de|en este momento|esta (?:mañana|tarde|noche)|cansad\w+|todavía|ayer)\b"
    ),
    hedge=(
        r"\b(?:quiero|quisiera|gustaría|necesito|busco|quizás?|tal vez|creo|no sé|espero|podría\w*|debería\w*|difícil"
        r"|puede que|pregunta|duda|parece|ruido|problema|vale pues|sabía|interesa\w*|content[oa]|ilusión|ganas)\b"
    ),
    asking=(
        r"¿|(?:qué|quién\w*|cómo|cuándo|dónde|cuál\w*|cuánt\w+|por qué|sabes|recuerdas|me recuerdas)\b|(?:como|donde"
        r"|cual|cuando|que) (?:es|son|está|se llama|me llamo|vivo|tengo|hay|puedo)\b"
    ),
    request=(
        r"(?:puedes|podrías|puede|dime|dame|muéstrame|envía\w*|manda\w*|explica\w*|ayúda\w*|haz|escribe|busca|mira"
        r"|quita|quíte\w*|pon|por favor|recuérda\w*|me (?:recuerdas|puedes|ayudas|mandas))\b"
    ),
    standing=r"\b(?:siempre|nunca|a partir de ahora|de ahora en adelante|ya no|no más)\b",
    trivial=r"\b(?:ver|mirar|probar|intentar\w*|pensar\w*|tendré en cuenta)\b",
    unreal=r"(?:si|en caso de|suponiendo|aunque)\b",
    link=(
        r"(?:y|pero|así que|porque|pues) (?=(?:yo|me|mi|mis|no|tengo|estoy|quiero|necesito|qué|quién|cuándo|cómo|si|es"
        r"|\w+amos)\b)"
    ),
    pointing=r"(?:eso|esto|ese|esa)\b",
)

PORTUGUESE = FactCues(
    self_words=(
        r"(?:\b(?:eu|meu|minha|meus|minhas|me|mim|comigo|nós|nosso|nossa|nossos|nossas|a gente|sou|tenho|estou|moro"
        r"|trabalho|uso|prefiro|odeio|tomo|comprei|chamo-me|mudei\w*|vou|posso|connosco|\w{3,}[aei]mos)\b)"
    ),
    others=r"\b(?:ele|ela|eles|elas|seu|sua|seus|suas|dele|dela|lhe)\b",
    lasting=(
        r"\b(?:sempre|nunca|jamais|cada (?:dia|semana|mês|ano)|todos os \w+|todas as \w+|prefer\w+|prefir\w+"
        r"|favorit\w+|odei\w+|adoro|adora|gosto|gosta|alérgic\w+|alergia|intoleran\w+|vegan\w*|vegetarian\w+|mor[oa]\b"
        r"|moramos|viv[oe]\w*|trabalh[oa]\b|desde|nasci|casad\w+|divorciad\w+|já não|a partir de|daqui para a frente"
        r"|chamo-me|me chamo|chama-se|aniversário|morada|endereço|usamos|uso|às (?:segundas|terças|quartas|quintas"
        r"|sextas)|não (?:come|bebe|como|bebo|comemos)|contrato|decidi\w*|combinámos|combinamos|prometi|orçamento"
        r"|vence|válid\w+|grávida|reformad\w+|aposentad\w+|responsável|só|por (?:trimestre|mês|ano|semana)|mudámos"
        r"|mudei|sofr\w+|(?:tenho|temos|tem) (?:um|uma|dois|duas|três|\d+) (?!pergunta|problema|dúvida|ideia))\b"
    ),
    promise=(
        r"\b(?:vou (?!ver|tentar|pensar|experimentar)\w+|vamos \w+r\b|vai (?:ligar|enviar|trazer|receber|chegar)"
        r"|\w{3,}arei|\w{3,}erei|\w{3,}aremos|ligo|envio|mando|trato d\w+|prometo|prometi)\b"
    ),
    subject=(
        r"(?:o|a|os|as|todos os|todas as) \w+|(?:meu|minha|nosso|nossa) (?:irmã|irmão|mãe|pai|filh[oa]|marido|mulher"
        r"|chefe|equipa|equipe|empresa|cliente|cão|gat[oa])s?\b"
    ),
    predicate=r"\b(?:é|são|era|está|estão|tem|têm|há|foi|vai|vão|pode|podem|quer|querem|deve|fica|faz)\b",
    passing=(
        r"\b(?:agora mesmo|hoje|neste momento|esta (?:manhã|tarde|noite)|cansad\w+|ainda|acabei de|já experimentei"
        r"|ontem)\b"
    ),
    hedge=(
        r"\b(?:quero|queria|gostaria|preciso d\w+|procuro|talvez|acho|não sei|espero|poderia|deveria|pergunta|dúvida"
        r"|parece|nada|não liga|problema|ajuda|sabia|interess\w+|contente|vontade)\b"
    ),
    asking=(
        r"(?:o que|quem|qual|quais|quant\w+|por que|porquê|onde|sabes|lembras|você sabe)\b|(?:como|quando) (?:é|são"
        r"|está|se|me|posso|faço|foi|fica|funciona)\b"
    ),
    request=(
        r"(?:podes|pode|poderia|diz\w*|dá\w*|mostra\w*|envia\w*|manda\w*|explica\w*|ajuda\w*|faz|escreve|procura|vê"
        r"|experimente|por favor|me ajuda|renove|quer\b)\b"
    ),
    standing=r"\b(?:sempre|nunca|a partir de agora|daqui para a frente|já não|nunca mais)\b",
    trivial=r"\b(?:ver|tentar|pensar|experimentar|sugerir|preparar|marcar)\b",
    unreal=r"(?:se|caso|supondo)\b",
    link=(
        r"(?:e|mas|então|porque|pois) (?=(?:eu|me|meu|minha|não|tenho|estou|quero|preciso|que|quem|quando|como|a gente"
        r"|\w+amos)\b)"
    ),
    pointing=r"(?:isso|isto|esse|essa)\b",
)

ITALIAN = FactCues(
    self_words=(
        r"\b(?:io|mio|mia|miei|mie|mi|noi|ci|nostr[oaie]|sono|ho|abito|vivo|lavoro|uso|preferisco|odio|prendo|sto"
        r"|da noi|posso|chiamo|mando|\w{3,}iamo)\b"
    ),
    others=r"\b(?:lui|lei|loro|suo|sua|suoi|sue|gli|le (?=piace|faccio))\b",
    lasting=(
        r"\b(?:sempre|mai|ogni (?:giorno|settimana|mese|mattina|sera|anno)|tutti i \w+|preferisc\w+|preferit\w+"
        r"|odi[oa]|ador[oa]|piace|piacciono|allergic\w+|allergia|intoller\w+|celiac\w+|vegan\w+|vegetarian\w+|abit[oa]"
        r"|abitiamo|viv[oe]|viviamo|lavor[oa]|lavoriamo|da (?:due|tre|quattro|cinque|\d+|quando|sempre|anni|gennaio)"
        r"|nat[oa]|sposat\w+|divorziat\w+|non \w+ più|d'ora in poi|da ora in poi|mi chiamo|si chiama|compleanno"
        r"|indirizzo|imparando|il (?:lunedì|martedì|mercoledì|giovedì|venerdì|sabato)|la domenica|deciso|promesso"
        r"|concordato|prenotat\w+|contratto|budget|soffr\w+|solo|usiamo|incinta|(?:ho|abbiamo|ha) (?:un|una|due|tre"
        r"|\d+) (?!domanda|problema|dubbio|idea)|pensione|responsabile)\b"
    ),
    promise=(
        r"\b(?:\w{3,}erò|\w{3,}irò|farò|chiamo io|mando io|ci penso io|mi occupo|prometto|ho promesso|faccio sapere"
        r"|\w{3,}eremo)\b"
    ),
    subject=(
        r"(?:il|lo|la|i|gli|le|l'|tutti i|tutte le) ?\w+|(?:mio|mia|nostro|nostra) (?:fratello|sorella|madre|padre"
        r"|figli[oa]|marito|moglie|capo|squadra|azienda|cliente|cane|gatt[oa])\b"
    ),
    predicate=(
        r"\b(?:è|sono|era|ha|hanno|c'è|ci sono|va|vanno|può|possono|vuole|vogliono|deve|fa|viene|vengono|girano)\b"
    ),
    passing=r"\b(?:adesso|oggi|in questo momento|stamattina|stasera|stanc\w+|appena|ancora|ieri)\b",
    hedge=(
        r"\b(?:vorrei|bisogno|cerco|forse|penso|credo|non (?:lo )?so|spero|potrebbe|dovrebbe|può darsi|provo|sembra"
        r"|domanda|problema|sapevo|interess\w+|content[oa]|vedo l'ora)\b"
    ),
    asking=(
        r"(?:chi|cosa|che cosa|dove|qual\w*|perché|quant\w+|sai|ricordi|ti ricordi)\b|(?:come|quando|che) (?:è|sono|si"
        r"|mi|posso|faccio|ho|ore|giorno|funziona)\b"
    ),
    request=(
        r"(?:puoi|potresti|può|dimmi|dammi|mostra\w*|manda\w*|spiega\w*|aiuta\w*|fai|scrivi|cerca|guarda|per favore"
        r"|prova|mi (?:mandi|aiuti|dici|spieghi)|usa\b|le consiglio)\b"
    ),
    standing=r"\b(?:sempre|mai|d'ora in poi|da ora in poi|mai più|non \w+ più)\b",
    trivial=r"\b(?:vedrò|proverò|guarderò|penserò|eviteremo)\b",
    unreal=r"(?:se|nel caso|supponiamo)\b",
    link=(
        r"(?:e|ma|quindi|perché|però) (?=(?:io|mi|mio|mia|non|ho|sono|vorrei|cerco|chi|che|quando|come|poi|\w+iamo)\b)"
    ),
    pointing=r"(?:questo|quello|ciò)\b",
)

CUES: Mapping[str, FactCues] = {
    "en": ENGLISH,
    "de": GERMAN,
    "fr": FRENCH,
    "es": SPANISH,
    "pt": PORTUGUESE,
    "it": ITALIAN,
}

UNSPACED_FACT = re.compile(
    r"(?:我们?|我們|咱们|本公司)(?:的|家|公司|团队|叫|是|住|在|有|喜欢|喜歡|不喜|不吃|对|對|从|每|都|只|用)"
    r"|(?:私|僕|俺|うち|弊社|当社|我々)(?:は|の|たち)|担当者は"
)
"""Chinese and Japanese statements about the speaker."""

UNSPACED_OTHER = re.compile(
    r"[?？]|吗|呢|请|請|ください|ですか|ますか|でしょうか|ましょうか|下さい|想|たい|知りたい|お願い"
)
"""Chinese and Japanese questions, wishes and requests."""
