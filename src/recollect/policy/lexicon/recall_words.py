"""Words that recall goes by in texts and questions, in English, German, French, Spanish, Italian and Portuguese."""

from __future__ import annotations

from recollect.lazy import lazy_pattern

SELF_WORDS = frozenset(
    """
    i me my mine myself we us our ours
    ich mich mir mein meine meinen meinem meiner meines wir uns unser unsere unseren unserem unserer
    je j'ai moi mon ma mes nous notre nos
    yo mí mi mis mío mía conmigo nosotros nosotras nuestro nuestra nuestros nuestras
    io mio mia miei mie noi nostro nostra nostri nostre
    eu meu minha meus minhas comigo nós nosso nossa nossos nossas
    """.split()
)
"""Words with which people speak of themselves."""

TIME_WORDS = frozenset(
    """
    yesterday today tonight tomorrow ago recently just last next weekend january february march april june july august
    september october november december monday tuesday wednesday thursday friday saturday sunday
    gestern heute morgen vorgestern übermorgen neulich kürzlich gerade letzte letzten letzter letztes nächste nächsten
    nächster nächstes wochenende januar februar märz juni juli oktober dezember montag dienstag mittwoch donnerstag
    freitag samstag sonntag
    hier aujourd'hui demain récemment dernier dernière prochain prochaine janvier février mars avril juin juillet août
    septembre octobre novembre décembre lundi mardi mercredi jeudi vendredi samedi dimanche
    ayer hoy mañana recientemente anoche pasado pasada próximo próxima enero febrero marzo abril mayo junio julio agosto
    septiembre octubre noviembre diciembre lunes martes miércoles jueves viernes sábado domingo
    ieri oggi domani recentemente scorso scorsa prossimo prossima gennaio febbraio aprile maggio giugno luglio settembre
    ottobre dicembre lunedì martedì mercoledì giovedì venerdì sabato domenica
    ontem hoje amanhã recentemente passado passada próxima janeiro fevereiro março maio junho julho setembro outubro
    novembro dezembro segunda terça quarta quinta sexta
    """.split()
)
"""Words that date an event."""

NUMBER_WORDS = frozenset(
    """
    two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand dozen couple
    once twice
    zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig hundert tausend dutzend einmal zweimal
    deux trois quatre cinq sept huit neuf dix onze douze vingt trente cent mille douzaine
    dos tres cuatro cinco seis siete ocho nueve diez once doce veinte treinta cien mil docena
    due tre quattro cinque sei sette otto nove dieci undici dodici venti trenta cento
    dois duas três quatro oito dez onze doze vinte trinta cem dúzia
    """.split()
)
"""Words that count."""

ASKS_TIME = lazy_pattern(
    r"\b(?:when|what (?:date|day|month|year|time)|how long|which (?:month|year|day)|wann|seit wann|wie lange|"
    r"an welchem tag|in welchem (?:monat|jahr)|quand|depuis quand|quel (?:jour|mois)|quelle (?:date|année)|"
    r"cuándo|cuando|qué (?:día|mes|año|fecha)|quando|che (?:giorno|mese|anno)|que (?:dia|mês|ano))\b|いつ|什么时候|何時"
)
"""Questions for a time, in lower case."""

ASKS_NUMBER = lazy_pattern(
    r"\b(?:how (?:many|much|often|old|long|far)|what (?:percentage|number|price|time|amount)|wie ?viele?|wie oft|"
    r"wie alt|wie hoch|wie teuer|combien|quel âge|quel (?:prix|nombre|montant)|cuánt[oa]s?|qué (?:precio|número|edad)|"
    r"quant[oaie]|quant[oa]s|quanti)\b|多少|几|幾|いくら|いくつ|何"
)
"""Questions for a number, in lower case."""

LIGHT_WORDS = """
    auch viele viel wieviele anzahl male gesamt verschiedene reihenfolge erste ersten letzte letzten seit vor nach
    während tag tage tagen woche wochen monat monate monaten jahr jahre jahren empfehlen vorschlagen erwähnt sagen
    gesagt gerade zuletzt aktuell neulich machen gemacht gut neu sache sachen etwas
    aussi combien nombre fois différents ordre premier première dernier dernière depuis avant après pendant jour jours
    semaine semaines mois année années recommander suggérer mentionné dire dit récemment actuellement faire fait bon
    nouveau chose choses
    también cuántos número veces diferentes orden primero primera último última desde antes después durante día días
    semana semanas mes meses año años recomendar sugerir mencionado decir dicho recientemente actualmente hacer hecho
    bueno nuevo cosa cosas
    anche numero volte diversi ordine primo prima ultimo ultima dopo durante giorno giorni settimana settimane mese mesi
    anno anni consigliare menzionato dire detto recentemente fare fatto buono nuovo cosa cose
    também número vezes diferentes ordem primeiro primeira último última depois durante dia dias semana semanas mês
    meses ano anos recomendar mencionado dizer disse recentemente fazer feito bom novo coisa coisas"""
"""Words that ask, count or date but seldom name the subject, besides the English ones."""

NOUN_LANGUAGE_WORDS = frozenset(
    """
    der die das den dem des ein eine einen einem einer ich mein meine meinen meiner wir unser unsere du dein deine sie
    ist sind war hat haben habe wird wie wer wann wo warum welche welcher welches wen wem und oder mit für von nach
    """.split()
)
"""Frequent German words. German writes every noun with a capital, so a capital says nothing about a name."""
