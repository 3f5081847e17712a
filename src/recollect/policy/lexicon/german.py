"""German."""

from __future__ import annotations

from recollect.policy.lexicon.entries import Lexicon, parse_cues, split_phrases, split_words

NEGATIONS = split_words("nicht nie niemals kein keine keinen keinem keiner keines nichts niemand ohne weder noch kaum")
UNREAL = split_words(
    "wenn falls ob sollte sollten könnte könnten würde würden müssen muss bevor bis bald fast will wollen"
)
FIRST_PERSON = split_words("ich mein meine meinen meinem meiner meines unser unsere unseren unserem unserer")
SECOND_PERSON = split_words("du dich dir dein deine deinen deinem deiner ihr euch euer eure ihnen ihre")

GERMAN = Lexicon(
    code="de",
    marks="äöüß",
    common=FIRST_PERSON
    | SECOND_PERSON
    | NEGATIONS
    | split_words(
        """
        mich mir uns der die das den dem des ein eine einen einem einer eines und oder aber denn weil dass wenn als wie
        wo was wer wen wem warum wann er sie es wir man sich sein seine seinen seinem seiner ist sind war waren bin
        bist seid wird werden wurde wurden worden hat haben habe hatte hatten kann können konnte soll sollen muss
        müssen darf dürfen mag möchte will wollen in im an am auf aus bei beim mit nach von vom vor zu zum zur für über
        unter durch gegen um bis seit ab auch nur schon noch so sehr mal da dort hier jetzt dann doch ja nein nun also
        etwas alle alles immer wieder mehr viel diese dieser dieses diesen
        """
    ),
    negations=NEGATIONS,
    question_words=split_words(
        """
        was wer wen wem wie wo wann warum wieso weshalb welche welcher welches wohin woher kannst könntest können
        könnten hast habt ist sind gibt wirst willst darf soll sollen machst möchtest
        """
    ),
    first_person=FIRST_PERSON,
    second_person=SECOND_PERSON,
    relations=split_words(
        """
        bruder schwester mutter vater mama papa eltern sohn tochter kind kinder mann frau freund freundin freunde oma
        opa onkel tante cousin familie hund katze chef chefin kollege kollegin team firma kunde kundin lieferant
        """
    ),
    dates=split_words(
        """
        montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz april juni juli august
        september oktober november dezember gestern morgen vorgestern montags dienstags mittwochs donnerstags freitags
        """
    ),
    reactions=split_words(
        """
        wow oh ah ach aha haha hahaha hihi hm hmm ups ja jep jo klar genau stimmt richtig ok okay super toll prima
        klasse spitze cool nett schön schöne schönen schönes gut gute guten gutes bestens perfekt wunderbar fantastisch
        genial herrlich lustig witzig interessant spannend traurig schade schlimm danke dank vielen bitte gerne gern
        klingt hört sieht freut freue freu mich spaß viel viele erfolg glück glückwunsch herzlichen wochenende
        feierabend abend tag nacht morgen heute gerade neues neu passt machen mache machst macht alles bis dann bald
        später hallo hi hey tschüss schlaf danken rückmeldung antwort hilfe schnelle ordnung verstanden idee wirklich
        echt total ganz geht gehts geht's gibt gibt's tut tun sagen sag mal denkst findest meinst kurz draufschauen
        erklären schauen nochmal problem sorry leid wochenend mega krass geil läuft
        """
    ),
    phrases=split_phrases(
        "das freut mich, das freut mich sehr, tut mir leid, ich auch, ich weiß, ich verstehe, mir auch, "
        "ich finde, ich glaube, ich denke, erzähl mir mehr, sag mir"
    ),
    greetings=split_phrases(
        "danke, hallo, hi, hey, guten morgen, guten tag, guten abend, gute nacht, tschüss, danke dir"
    ),
    small_talk=split_phrases("""
        danke schön, vielen dank, dankeschön, bitte, bitte schön, gern geschehen, gerne, kein problem, alles klar,
        bis morgen, bis später, bis bald, bis dann, wie geht's, wie geht es dir, ja, nein, prima, genau, verstanden,
        passt, schönes wochenende, schönen feierabend, herzlichen glückwunsch, was gibt's neues, machen wir so,
        kannst du mir helfen, hilf mir, was kannst du, wer bist du, wie heißt du, bist du da, bist du noch da, hörst
        du mich, was meinst du, das verstehe ich nicht, nochmal bitte, noch einmal bitte, mach weiter, weiter,
        moment, ich bin zurück, ich muss los, das war's, das war alles, das wär's, das ist alles, eine frage, nur
        ein test, guter punkt, stimmt, einverstanden, so machen wir das, schlaf gut, viel spaß, viel erfolg, viel
        glück, klingt gut, super, toll, okay, ok
    """),
    fillers=split_words(
        """
        der die das den dem des ein eine einen einem einer auch bitte ja doch mal übrigens
        """
    ),
    has_capital_nouns=True,
    cues={
        "explicit": parse_cues(
            r"""
merk merke merken merkt: (?:^|[.!?:;,(–—-] ?)(?:bitte,? |und |also |ok,? )?(?:merke? dir|merkt euch|merken sie sich
    |du sollst dir merken|bitte merken|kannst du dir (?:bitte )?merken)\b
vergiss denk denke notier notiere: (?:^|[.!?:;,(–—-] ?)(?:bitte |und )?(?:vergiss (?:bitte )?nicht, dass
    |denke? (?:bitte )?d(?:a|ar)ran, dass|notiere? dir)\b
""",
            (),
        ),
        "decision": parse_cues(
            r"""
entschieden beschlossen vereinbart geeinigt: \b(?:haben?|hat|wurde|wurden|ist)
    .{0,60}\b(?:entschieden|beschlossen|vereinbart|geeinigt)\b
genehmigt abgelehnt freigegeben bewilligt abgesagt: \b(?:genehmigt|abgelehnt|freigegeben|bewilligt|abgesagt)\b
entscheidung: ^(?:die )?entscheidung ?[:–—-]
""",
            NEGATIONS | UNREAL,
        ),
        "task_completion": parse_cues(
            r"""
erledigt abgeschlossen fertiggestellt ausgeliefert behoben veröffentlicht: \b(?:erledigt|abgeschlossen
    |fertiggestellt|ausgeliefert|behoben|veröffentlicht)\b
fertig: \b(?:ist|sind|bin) (?:jetzt |endlich )?fertig\b
""",
            NEGATIONS | UNREAL,
        ),
        "error": parse_cues(
            r"""
fehlgeschlagen abgestürzt ausgefallen fehlermeldung absturz: \b(?:fehlgeschlagen|abgestürzt|ausgefallen|fehlermeldung
    |absturz)\b
funktioniert geht: \b(?:funktioniert|geht) (?:\w+ ){0,2}nicht\b
kaputt: \b(?:ist|sind) (?:\w+ )?kaputt\b
""",
            UNREAL,
        ),
    },
)
