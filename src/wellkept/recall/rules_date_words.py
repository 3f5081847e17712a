"""Words for dates and spans of time, in English, German, French, Spanish, Italian and Portuguese."""

from __future__ import annotations

from collections.abc import Mapping

MONTHS: Mapping[str, int] = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro,february feb februar février febrero febbraio fevereiro,"
            "march mar märz mars marzo março,april apr avril abril aprile,may mai mayo maggio maio,"
            "june jun juni juin junio giugno junho,july jul juli juillet julio luglio julho,august aug août agosto,"
            "september sept sep septembre septiembre settembre setembro,"
            "october oct oktober octobre octubre ottobre outubro,"
            "november nov novembre noviembre novembro,december dec dezember décembre diciembre dicembre dezembro"
        ).split(","),
        1,
    )
    for name in names.split()
}
DAYS: Mapping[str, int] = {
    name: number
    for number, names in enumerate(
        (
            "monday montag lundi lunes lunedì,tuesday dienstag mardi martes martedì,"
            "wednesday mittwoch mercredi miércoles mercoledì,thursday donnerstag jeudi jueves giovedì,"
            "friday freitag vendredi viernes venerdì,saturday samstag samedi sábado sabato,"
            "sunday sonntag dimanche domingo domenica"
        ).split(",")
    )
    for name in names.split()
}
SEASONS: Mapping[str, int] = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""First month of each season."""

HOLIDAYS: Mapping[str, tuple[int, int]] = {
    "new year": (1, 1),
    "new year's": (1, 1),
    "new year's day": (1, 1),
    "valentine's": (2, 14),
    "valentine's day": (2, 14),
    "st. patrick's day": (3, 17),
    "independence day": (7, 4),
    "4th of july": (7, 4),
    "fourth of july": (7, 4),
    "halloween": (10, 31),
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "christmas": (12, 25),
    "new year's eve": (12, 31),
}
NUMBERS: Mapping[str, int] = {
    word: number
    for number, words in enumerate(
        (
            "a an one,two couple zwei deux dos due dois duas,three few drei trois tres tre três paar,"
            "four vier quatre cuatro quattro quatro,five fünf cinq cinco cinque,six sechs seis sei,"
            "seven sieben sept siete sette sete,eight acht huit ocho otto oito,nine neun neuf nueve nove,"
            "ten zehn dix diez dieci dez,eleven elf onze once undici,twelve zwölf douze doce dodici doze"
        ).split(","),
        1,
    )
    for word in words.split()
}
NEAR_DAYS: Mapping[str, int] = {
    **dict.fromkeys("today,this morning,tonight,heute,aujourd'hui,hoy,oggi,hoje".split(","), 0),
    **dict.fromkeys("yesterday,last night,gestern,hier,hier soir,hier matin,ayer,anoche,ieri,ontem".split(","), 1),
    **dict.fromkeys("vorgestern,avant-hier,anteayer".split(","), 2),
}
"""Days before today."""

PAST_UNITS: Mapping[str, str] = {
    phrase: unit
    for unit, phrases in {
        "week": "letzte woche,letzter woche,vergangene woche,vergangener woche,semaine dernière,semaine passée,"
        "semana pasada,settimana scorsa,scorsa settimana,semana passada",
        "month": "letzten monat,letztem monat,vergangenen monat,vergangenem monat,mois dernier,mois passé,mes pasado,"
        "mese scorso,scorso mese,mês passado",
        "year": "letztes jahr,letzten jahr,letztem jahr,vergangenes jahr,vergangenen jahr,année dernière,an dernier,"
        "année passée,an passé,año pasado,anno scorso,scorso anno,ano passado",
    }.items()
    for phrase in phrases.split(",")
}
"""Last week, month and year: those of the calendar, as English says without an article ("last month")."""

RECENT_UNITS: Mapping[str, str] = {
    phrase: unit
    for unit, phrases in {
        "week": "der letzten woche,der vergangenen woche,dernière semaine,última semana,ultima settimana",
        "month": "des letzten monats,des vergangenen monats,dernier mois,último mes,ultimo mese,último mês",
        "year": "des letzten jahres,des vergangenen jahres,dernière année,último año,ultimo anno,último ano",
    }.items()
    for phrase in phrases.split(",")
}
"""The week, month and year that end today, as English says with an article ("in the last month")."""

UNIT_WORDS: Mapping[str, str] = {
    word: unit
    for unit, words in {
        "day": "tage tagen jours días dias giorni",
        "week": "wochen semaines semanas settimane",
        "month": "monate monaten mois meses mesi",
        "year": "jahre jahren années ans años anni anos",
    }.items()
    for word in words.split()
}
"""Units that are counted in other languages than English."""

UNIT_DAYS: Mapping[str, float] = {"day": 1, "week": 7, "weekend": 7, "month": 30.4, "year": 365.25}
"""Average length of each unit. Weekends are a week apart."""
