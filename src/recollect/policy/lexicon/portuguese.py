"""Portuguese."""

from __future__ import annotations

from recollect.policy.lexicon.entries import Lexicon, parse_cues, split_phrases, split_words

NEGATIONS = split_words("não nunca jamais nada ninguém nenhum nenhuma sem nem tampouco")
UNREAL = split_words("se antes deve devem deveria poderia há quer pode breve quase quando até")
FIRST_PERSON = split_words("eu meu minha meus minhas nosso nossa nossos nossas comigo sou tenho estou moro trabalho")
SECOND_PERSON = split_words("tu te ti teu tua teus tuas você vocês vosso contigo")

PORTUGUESE = Lexicon(
    code="pt",
    marks="ãõçâêôáéíóúà",
    common=FIRST_PERSON
    | SECOND_PERSON
    | NEGATIONS
    | split_words(
        """
        me mim comigo o a os as um uma uns umas e ou mas porque que quem qual onde quando como é são era eram foi foram
        ser está estão estava estar há tem têm tinha de do da dos das em no na nos nas num numa com por pelo pela pelos
        pelas para sem sobre entre desde até se seu sua seus suas lhe isto este esta isso esse essa aquilo muito mais
        menos também já só sempre aqui aí agora assim tudo todo toda todos todas ele ela eles elas nós ao aos à às
        ficam fica
        """
    ),
    negations=NEGATIONS,
    question_words=split_words(
        """
        que quem como quando onde qual quais quanto quantos porquê o podes pode poderia tens tem há estás está é queres
        """
    ),
    first_person=FIRST_PERSON,
    second_person=SECOND_PERSON,
    relations=split_words(
        """
        irmão irmã mãe pai pais filho filha filhos criança marido esposa mulher amigo amiga amigos namorado namorada
        avó avô tio tia primo família cão cachorro gato gata chefe colega equipa equipe empresa cliente fornecedor
        """
    ),
    dates=split_words(
        """
        segunda terça quarta quinta sexta sábado domingo segunda-feira terça-feira janeiro fevereiro março abril maio
        junho julho agosto setembro outubro novembro dezembro ontem amanhã quintas
        """
    ),
    reactions=split_words(
        """
        uau oh ah ai haha hahaha kkk kkkk rsrs sim claro certo ok okay ótimo ótima perfeito perfeita excelente incrível
        fantástico fantástica maravilhoso fixe legal bom boa bons boas bem melhor bonito bonita lindo linda engraçado
        divertido interessante triste pena lamento obrigado obrigada muito parabéns bravo sorte dia tarde noite fim
        semana hoje amanhã olá oi tchau abraço abraços beijo beijos ajuda resposta novidade novidades alguma algum novo
        trabalho combinado assim fazemos fazes fazer parece feliz contente exato exatamente entendido verdade problema
        ideia olhada dar explicar tudo todos achas pensas super
        """
    ),
    phrases=split_phrases(
        "fico muito feliz, fico feliz, lamento muito, eu também, eu sei, concordo, conta-me mais, "
        "acho que sim, estou de acordo, diz-me"
    ),
    greetings=split_phrases("obrigado, obrigada, olá, oi, bom dia, boa tarde, boa noite"),
    small_talk=split_phrases("""
        muito obrigado, muito obrigada, de nada, tchau, adeus, até logo, até amanhã, até já, tudo bem, como estás,
        sim, não, claro, certo, perfeito, muito bem, entendido, está bem, combinado, bom trabalho, bom fim de
        semana, podes ajudar-me, pode me ajudar, ajuda-me, o que podes fazer, quem és, quem é você, como te chamas,
        estás aí, não entendo, repete, outra vez, continua, um momento, espera, tenho de ir, é tudo, é só isso, uma
        pergunta, boa sorte, parabéns, um abraço, a todos, por favor, exatamente, fazemos assim
    """),
    fillers=split_words("o a os as um uma uns umas do da dos das também pois"),
    cues={
        "explicit": parse_cues(
            r"""
lembra lembre lembra-te esqueças esqueça memoriza memorize anota anote toma: (?:^|[.!?:;,(–—-] ?)(?:por favor,? )?
    (?:lembra-te de|lembra|lembre-se de|lembre|não te esqueças de|não esqueças?|não se esqueça de|memori[zs][ae]
    |anot[ae]|toma nota de) (?:que|isto|isso|:)
""",
            (),
        ),
        "decision": parse_cues(
            r"""
decidimos decidiu decidido acordámos combinámos: \b(?:decidimos|decidiu|foi decidido|acordámos|combinámos)\b
aprovado aprovou aprovada rejeitado rejeitou recusado recusou autorizado cancelado cancelada: \b(?:aprovad[oa]s?|aprovou
    |rejeitad[oa]s?|rejeitou|recusad[oa]s?|recusou|autorizad[oa]s?|cancelad[oa]s?)\b
""",
            NEGATIONS | UNREAL,
        ),
        "task_completion": parse_cues(
            r"""
terminei terminado terminada entregue corrigido publicado concluído concluída: \b(?:está|estão|foi|foram) (?:\w+ )?
    (?:terminad[oa]s?|entregues?|corrigid[oa]s?|publicad[oa]s?|concluíd[oa]s?)\b|\bterminei\b
""",
            NEGATIONS | UNREAL,
        ),
        "error": parse_cues(
            r"""
falhou falha erro avaria: \bfalhou\b|\b(?:uma|um|a|o|deu) (?:falha|erro|avaria)\b
funciona: \bnão funciona\b
""",
            UNREAL,
        ),
    },
)
