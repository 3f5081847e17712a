"""Italian."""

from __future__ import annotations

from recollect.policy.lexicon.entries import Lexicon, parse_cues, split_phrases, split_words

NEGATIONS = split_words("non mai niente nulla nessuno nessun nessuna senza né neanche nemmeno neppure")
UNREAL = split_words("se prima deve devono dovrebbe potrebbe bisogna vuole può presto quasi quando finché")
FIRST_PERSON = split_words("io mio mia miei mie nostro nostra nostri nostre sono ho abito vivo lavoro")
SECOND_PERSON = split_words("tu ti te tuo tua tuoi tue voi vi vostro vostra lei suo")

ITALIAN = Lexicon(
    code="it",
    marks="èìòù",
    common=FIRST_PERSON
    | SECOND_PERSON
    | NEGATIONS
    | split_words(
        """
        mi me il lo la i gli le un uno una e o ma perché che chi cui dove quando come è era erano fu essere siamo siete
        ha hanno aveva avere di del dello della dei degli delle al allo alla ai agli alle da dal dalla dai dalle in nel
        nella nei nelle con su sul sulla sui per tra fra si sua loro ci ne lui questo questa questi queste quello
        quella molto più meno anche già solo sempre qui lì ora così tutto tutta tutti tutte cosa c'è un' l' dell' nell'
        all' dall'
        """
    ),
    negations=NEGATIONS,
    question_words=split_words(
        """
        chi che cosa come quando dove perché quale quali quanto quanti com'è puoi può potresti potrebbe hai ha ci c'è
        sei stai è vuoi me lo
        """
    ),
    first_person=FIRST_PERSON,
    second_person=SECOND_PERSON,
    relations=split_words(
        """
        fratello sorella madre padre mamma papà genitori figlio figlia figli bambino bambina marito moglie amico amica
        amici fidanzato fidanzata nonna nonno zio zia cugino famiglia cane gatto capo collega squadra azienda cliente
        fornitore
        """
    ),
    dates=split_words(
        """
        lunedì martedì mercoledì giovedì venerdì sabato domenica gennaio febbraio marzo aprile maggio giugno luglio
        agosto settembre ottobre novembre dicembre ieri domani
        """
    ),
    reactions=split_words(
        """
        wow oh ah eh ahah ahaha ahahah hahaha ok okay sì certo bene va perfetto perfetta ottimo ottima eccellente
        incredibile fantastico fantastica meraviglioso stupendo bello bella belli bravo brava buono buona buon meglio
        ridere divertente interessante triste peccato dispiace grazie mille tante complimenti congratulazioni auguri
        fortuna bocca lupo giorno giornata sera serata notte fine settimana oggi domani ciao salve abbraccio abbracci
        bacio baci aiuto l'aiuto risposta novità nuovo lavoro d'accordo così facciamo fai fare sembra contento contenta
        esatto esattamente capito vero problema idea occhiata un'occhiata dare spiegare chiaro tutto tutti pensi credi
        dice super andato andata
        """
    ),
    phrases=split_phrases(
        "sono contento per te, sono contenta per te, mi dispiace, anch'io, lo so, sono d'accordo, "
        "dimmi di più, mi piace, credo di sì, mi fa piacere"
    ),
    greetings=split_phrases("grazie, ciao, salve, buongiorno, buonasera, buonanotte"),
    small_talk=split_phrases("""
        grazie mille, prego, di niente, arrivederci, a presto, a domani, a dopo, come stai, come va, sì, no, va
        bene, certo, perfetto, molto bene, capito, d'accordo, ottimo lavoro, buon fine settimana, buona fortuna,
        puoi aiutarmi, mi puoi aiutare, aiutami, cosa sai fare, chi sei, come ti chiami, ci sei, mi senti, cosa vuoi
        dire, non capisco, ripeti, ancora una volta, continua, un momento, aspetta, devo andare, è tutto, basta
        così, una domanda, in bocca al lupo, complimenti, auguri, un abbraccio, a tutti, per favore, esatto,
        facciamo così, che si dice
    """),
    fillers=split_words("il lo la i gli le un uno una del della dei delle anche pure"),
    cues={
        "explicit": parse_cues(
            r"""
ricorda ricordati ricordi dimenticare memorizza annota segnati tieni: (?:^|[.!?:;,(–—-] ?)(?:per favore,? )?
    (?:ricordati|ricorda|si ricordi|non dimenticare|memorizza|annota|segnati|tieni presente) (?:che|questo|:)
""",
            (),
        ),
        "decision": parse_cues(
            r"""
deciso concordato scelto: \b(?:abbiamo|ho|ha|hanno|è stato) (?:\w+ )?(?:deciso|concordato|scelto)\b
approvato approvata rifiutato rifiutata respinto respinta autorizzato annullato annullata: \b(?:approvat[oaie]
    |rifiutat[oaie]|respint[oaie]|autorizzat[oaie]|annullat[oaie])\b
""",
            NEGATIONS | UNREAL,
        ),
        "task_completion": parse_cues(
            r"""
finito finita terminato terminata consegnato consegnata corretto pubblicato completato completata: \b(?:ho|abbiamo
    |ha|hanno|è|è stato|è stata) (?:finit[oa]|terminat[oa]|consegnat[oa]|corretto|pubblicat[oa]|completat[oa])\b
""",
            NEGATIONS | UNREAL,
        ),
        "error": parse_cues(
            r"""
errore guasto fallito fallita: \b(?:un|l'|il|dà) ?(?:errore|guasto)\b|\b(?:è|ha) fallit[oa]\b
funziona: \bnon funziona\b
""",
            UNREAL,
        ),
    },
)
