"""Spanish."""

from __future__ import annotations

from recollect.policy.lexicon.entries import Lexicon, parse_cues, split_phrases, split_words

NEGATIONS = split_words("no nunca jamás nada nadie ningún ninguno ninguna sin ni tampoco apenas")
UNREAL = split_words("si antes debe deben debería podría hay quiere puede pronto casi cuando hasta")
FIRST_PERSON = split_words("yo mi mis mío mía nuestro nuestra nuestros nuestras conmigo soy tengo estoy vivo trabajo")
SECOND_PERSON = split_words("tú tu tus te ti usted ustedes vosotros vuestro vuestra contigo os")

SPANISH = Lexicon(
    code="es",
    marks="ñ¿¡áéíóú",
    common=FIRST_PERSON
    | SECOND_PERSON
    | NEGATIONS
    | split_words(
        """
        me mí conmigo el la los las un una unos unas y o e pero porque que quien cual donde cuando como es son era eran
        fue fueron ser está están estaba estar he ha han había hay tiene tienen tenía de del al a en con por para sin
        sobre entre desde hasta se su sus le les lo nos él ella ellos ellas esto este esta estos estas eso ese esa muy
        más menos también ya solo sólo siempre aquí ahí ahora así todo toda todos todas qué cómo cuándo dónde quién
        cuál sí si
        """
    ),
    negations=NEGATIONS,
    question_words=split_words(
        """
        qué quién cómo cuándo dónde cuál cuánto cuánta cuántos por puedes puede podrías podría tienes tiene hay estás
        está eres es me quieres has
        """
    ),
    first_person=FIRST_PERSON,
    second_person=SECOND_PERSON,
    relations=split_words(
        """
        hermano hermana madre padre mamá papá padres hijo hija hijos niño niña marido esposo esposa mujer amigo amiga
        amigos novio novia abuela abuelo tío tía primo familia perro gato jefe jefa colega equipo empresa cliente
        clienta proveedor
        """
    ),
    dates=split_words(
        """
        lunes martes miércoles jueves viernes sábado domingo enero febrero marzo abril mayo junio julio agosto
        septiembre octubre noviembre diciembre ayer mañana
        """
    ),
    reactions=split_words(
        """
        wow oh ah ay uy jaja jajaja jajajaja jeje vale sí claro genial perfecto perfecta excelente increíble estupendo
        fantástico maravilloso guay bien bueno buena buenos buenas mejor bonito bonita lindo linda precioso gracioso
        divertido interesante triste pena lástima siento gracias muchas mucha mucho muchos felicidades enhorabuena
        bravo suerte día días tarde tardes noche noches fin semana hoy mañana hola adiós abrazo abrazos beso besos
        ayuda respuesta novedad novedades alguna algún nuevo nuevas trabajo acuerdo así hacemos haces hacer suena
        parece alegro exacto exactamente entendido verdad tal problema idea echarle vistazo explicar todo todos crees
        piensas super súper
        """
    ),
    phrases=split_phrases(
        "me alegro, me alegro mucho, lo siento, yo también, ya lo sé, ya veo, me parece bien, "
        "estoy de acuerdo, cuéntame más, dime, me encanta, creo que sí"
    ),
    greetings=split_phrases("gracias, hola, buenos días, buenos dias, buenas, buenas tardes, buenas noches"),
    small_talk=split_phrases("""
        muchas gracias, de nada, adiós, hasta luego, hasta mañana, hasta pronto, qué tal, cómo estás, sí, no, vale,
        claro, perfecto, muy bien, entendido, genial, de acuerdo, buen trabajo, buen fin de semana, mucha suerte,
        puedes ayudarme, me puedes ayudar, ayúdame, qué puedes hacer, quién eres, cómo te llamas, estás ahí, me
        oyes, qué quieres decir, no entiendo, repite, otra vez, sigue, continúa, un momento, espera, tengo que irme,
        eso es todo, nada más, una pregunta, buen punto, felicidades, enhorabuena, un abrazo, a todos, qué hay de
        nuevo, por favor, exacto, así lo hacemos
    """),
    fillers=split_words("el la los las un una unos unas de del también pues"),
    cues={
        "explicit": parse_cues(
            r"""
recuerda recuerde acuérdate olvides olvide memoriza anota apunta ten: (?:^|[.!?:;,(–—-] ?)
    (?:por favor,? )?(?:recuerd[ae]
    |acuérdate de|no olvide?s?|memoriza|anota|apunta|ten en cuenta) (?:que|esto|:)
""",
            (),
        ),
        "decision": parse_cues(
            r"""
decidido decidimos decidió acordamos acordado: \b(?:hemos|han|ha|he) (?:decidido|acordado)\b
    |\b(?:decidimos|decidió|acordamos)\b
aprobado aprobó aprobada rechazado rechazó rechazada autorizado cancelado cancelada: \b(?:aprobad[oa]s?|aprobó
    |rechazad[oa]s?|rechazó|autorizad[oa]s?|cancelad[oa]s?)\b
""",
            NEGATIONS | UNREAL,
        ),
        "task_completion": parse_cues(
            r"""
terminado terminada terminé entregado entregada corregido publicado desplegado: \b(?:he|hemos|ha|han|está|están)
     (?:\w+ )?(?:terminad[oa]s?|entregad[oa]s?|corregid[oa]s?|publicad[oa]s?|desplegad[oa]s?)\b|\bterminé\b
""",
            NEGATIONS | UNREAL,
        ),
        "error": parse_cues(
            r"""
falló fallado fallo avería: \b(?:falló|ha fallado)\b|\b(?:un|el|hay un|hay una|una) (?:fallo|avería)\b
funciona: \b(?:no|ya no) funciona\b
""",
            UNREAL - {"hay"},
        ),
    },
)
