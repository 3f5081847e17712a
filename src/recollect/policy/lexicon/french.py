"""French."""

from __future__ import annotations

from recollect.policy.lexicon.entries import Lexicon, parse_cues, split_phrases, split_words

NEGATIONS = split_words("ne n pas jamais rien aucun aucune personne sans ni guère plus")
UNREAL = split_words("si avant doit doivent devrait pourrait faut veut peut bientôt presque quand")
FIRST_PERSON = split_words("je j'ai j'habite j'aime mon ma mes notre nos j'étais j'avais j'y m'appelle j'en")
SECOND_PERSON = split_words("tu te toi ton ta tes vous votre vos t'as t'es")

FRENCH = Lexicon(
    code="fr",
    marks="çœêëîïôùûèàéâ",
    common=FIRST_PERSON
    | SECOND_PERSON
    | NEGATIONS
    | split_words(
        """
        me moi m le la les un une des du de d l au aux et ou mais donc car que qui quoi dont où il elle on nous ils
        elles ce cet cette ces ça c'est c'était est sont était étaient suis es êtes sommes être été ai as a avons avez
        ont avait avoir fait fais font faire va vais vont aller dans en sur sous par pour avec sans chez vers entre
        depuis pendant après avant se s son sa ses leur leurs lui eux y très trop bien plus moins aussi encore toujours
        déjà seulement comme quand si tout toute tous toutes même maintenant alors oui non n'est n'a qu'il qu'elle
        qu'on l'ai s'est m'a t'a d'un d'une quel quelle quels quelles
        """
    ),
    negations=NEGATIONS,
    question_words=split_words(
        """
        qui que quoi où quand comment pourquoi combien quel quelle quels quelles est-ce est peux pouvez pourriez avez
        as veux voulez êtes es fais faites qu'est qu'en
        """
    ),
    first_person=FIRST_PERSON,
    second_person=SECOND_PERSON,
    relations=split_words(
        """
        frère soeur sœur mère père maman papa parents fils fille enfant enfants mari femme ami amie amis copain copine
        mamie papi oncle tante cousin famille chien chat chef patron collègue équipe entreprise client cliente
        fournisseur
        """
    ),
    dates=split_words(
        """
        lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril mai juin juillet août septembre
        octobre novembre décembre hier demain
        """
    ),
    reactions=split_words(
        """
        wow oh ah là haha hahaha hihi mdr lol ouais oui ok okay d'accord super génial top cool parfait parfaite
        excellent magnifique incroyable formidable fantastique merveilleux drôle marrant intéressant triste dommage
        désolé désolée merci beaucoup bravo félicitations bon bonne bonnes bien mieux beau belle joli jolie chance
        courage journée soirée nuit week-end weekend semaine aujourd'hui matin soir bientôt demain salut bonjour coucou
        bisous bise bises aide retour réponse nouvelles nouveau neuf marche clair coup œil d'œil jeter exactement fait
        tout vraiment tellement content contente heureux heureuse plaisir s'il plaît expliquer m'expliquer passé passe
        penses pensez fais quoi problème idée
        """
    ),
    phrases=split_phrases(
        "ça me va, je sais, je vois, je comprends, je suis d'accord, je suis content pour toi, "
        "je suis contente pour toi, moi aussi, dis-moi, raconte-moi, je pense, je crois"
    ),
    greetings=split_phrases("merci, bonjour, salut, bonsoir, coucou"),
    small_talk=split_phrases("""
        merci beaucoup, merci bien, de rien, je vous en prie, bonne nuit, bonne journée, bonne soirée, au revoir, à
        bientôt, à demain, à plus, ça va, comment ça va, oui, non, d'accord, parfait, pas de problème, très bien, ça
        marche, bon week-end, bonne chance, tout à fait, exactement, bravo, félicitations, quoi de neuf, à tous,
        peux-tu m'aider, pouvez-vous m'aider, aide-moi, que peux-tu faire, qui es-tu, comment t'appelles-tu, tu es
        là, vous êtes là, tu m'entends, que veux-tu dire, je ne comprends pas, répète, répétez, encore une fois,
        continue, continuez, un instant, attends, je dois y aller, c'est tout, ce sera tout, une question, bien vu,
        on fait comme ça, s'il te plaît, s'il vous plaît
    """),
    fillers=split_words("le la les un une des du de l d aussi donc alors"),
    cues={
        "explicit": parse_cues(
            r"""
souviens souvenez rappelle rappelez retiens retenez mémorise note: (?:^|[.!?:;,(–—-] ?)(?:s'il te plaît,? )?
    (?:(?:souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous) (?:que|qu')|(?:retiens|retenez|mémorise
    |note bien) (?:que|qu'|bien|ceci|ça|:))
n'oublie n'oubliez: (?:^|[.!?:;,(–—-] ?)n'oublie[sz]? (?:pas|jamais) (?:que|qu')
""",
            (),
        ),
        "decision": parse_cues(
            r"""
décidé convenu choisi: \b(?:avons|ai|a|ont|est|été) (?:\w+ )?(?:décidé|convenu|choisi)\b
approuvé refusé validé autorisé annulé: \b(?:a|ont|est|été|sont) (?:\w+ )?
    (?:approuvée?s?|refusée?s?|validée?s?|autorisée?s?|annulée?s?)\b
approuvée refusée validée annulée: \b(?:approuvée|refusée|validée|annulée)s?\b
""",
            NEGATIONS | UNREAL,
        ),
        "task_completion": parse_cues(
            r"""
terminé terminée fini finie livré livrée corrigé corrigée publié déployé: \b(?:a|ai|avons|ont|est|été|sont) (?:\w+ )?
    (?:terminée?s?|finie?s?|livrée?s?|corrigée?s?|publiée?s?|déployée?s?)\b
""",
            NEGATIONS | UNREAL,
        ),
        "error": parse_cues(
            r"""
erreur échoué planté panne: \b(?:une|l'|en) ?(?:erreur|panne)\b|\b(?:a|ont) (?:échoué|planté)\b
marche fonctionne: \bne (?:marche|fonctionne) (?:pas|plus)\b
""",
            UNREAL,
        ),
    },
)
